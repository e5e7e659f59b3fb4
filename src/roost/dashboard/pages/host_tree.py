"""The provider tree of a host as HTML, and its use by class."""

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.html.bars import swatch, use_bar
from roost.dashboard.html.lists import cell, empty, head, table
from roost.dashboard.html.values import amount, name, number, percent
from roost.dashboard.views.host import HostPageView
from roost.dashboard.views.host_tree import InventoryRow, ProviderRow
from roost.fleet.fits import has_room

_LEGEND = (("bar-used", "used"), ("bar-total", "free"), ("bar-reserved", "reserved"))

_AMOUNTS = ("Used", "Capacity", "Reserved", "Total")

_MOST_CHIPS = 8
"""Traits that are shown at first; the others unfold."""


def use_section(view: HostPageView) -> h.Node:
    """Return the use of the host's whole tree, by class."""
    if view.tree is None:
        if view.version is None:
            words = "Placement is reached over HTTP; pages have what agents report, without amounts."
            return h.section(".card")[empty("Use is not known here", words)]
        return None
    sums: dict[str, list[int]] = {}
    for provider in view.tree.providers:
        for each in () if provider.shared else provider.inventories:
            found = sums.setdefault(each.resource_class, [0, 0, 0, 0])
            for place, value in enumerate((each.used, each.capacity, each.reserved, each.total)):
                found[place] += value
    if not sums:
        return h.section(".card")[empty("No inventory", "Its providers offer nothing.")]
    return h.section(".card.flush", aria_labelledby="use")[
        h.div(".section-head")[
            h.h2("#use")["Capacity and use"],
            h.ul(".legend")[
                [
                    h.li[swatch(kind), text]
                    for kind, text in (
                        ("bar-used", "used"),
                        ("bar-total", "free"),
                        ("bar-reserved", "reserved"),
                    )
                ]
            ],
        ],
        table(
            "Capacity and use",
            ["Class", "Use", *(head(each, numeric=True) for each in _AMOUNTS)],
            [_sum_row(view, resource_class, *each) for resource_class, each in sums.items()],
        ),
    ]


def _sum_row(
    view: HostPageView, resource_class: str, used: int, capacity: int, reserved: int, total: int
) -> h.Element:
    share = percent(used, capacity)
    return h.tr[
        h.th(scope="row", data_label="Class")[
            h.a(href=addresses.with_query(addresses.MAP, **{"class": resource_class}, at=view.at_asked))[
                resource_class
            ]
        ],
        cell(
            "Use",
            h.span(".bar-line")[_bar(resource_class, used, capacity, reserved, total), h.span(".num")[share]],
        ),
        [
            cell(label, amount(resource_class, value), numeric=True)
            for label, value in zip(_AMOUNTS, (used, capacity, reserved, total), strict=True)
        ],
    ]


def _bar(resource_class: str, used: int, capacity: int, reserved: int, total: int) -> h.Element:
    """Return a bar of use with the reserved part, in units of the capacity."""
    usable = total - reserved
    kept = round(reserved * capacity / usable) if usable > 0 else 0
    words = (
        f"{amount(resource_class, used)} of {amount(resource_class, capacity)} used, "
        f"{amount(resource_class, reserved)} of {amount(resource_class, total)} reserved"
    )
    return use_bar(used, capacity, words, reserved=kept)


def tree_section(view: HostPageView) -> h.Node:
    """Return the provider tree with the inventories of each provider."""
    if view.tree is None:
        return None
    tree = view.tree
    own = [each for each in tree.providers if not each.shared]
    shared = [each for each in tree.providers if each.shared]
    return h.section(".card", aria_labelledby="tree")[
        h.div(".section-head")[
            h.h2("#tree")["Provider tree"],
            h.span(".muted.num")[f"{number(len(own))} provider{'s' if len(own) > 1 else ''}"],
        ],
        _branches(own, view.at_asked),
        [
            h.h3["Shared with it by aggregates"],
            h.ul(".tree")[[h.li[_provider(each, view.at_asked)] for each in shared]],
        ]
        if shared
        else None,
        tree.more > 0 and h.p(".muted")[f"{number(tree.more)} more providers are not shown."],
    ]


def _branches(providers: list[ProviderRow], at: str | None) -> h.Node:
    """Return nested lists of providers, which come each after its parent."""

    def level(place: int, depth: int) -> tuple[list[h.Node], int]:
        items: list[h.Node] = []
        while place < len(providers) and providers[place].depth == depth:
            each = providers[place]
            below, place = level(place + 1, depth + 1)
            items.append(h.li[_provider(each, at), h.ul[below] if below else None])
        return items, place

    return h.ul(".tree")[level(0, 0)[0]]


def _provider(each: ProviderRow, at: str | None) -> h.Node:
    return h.div(".provider")[
        h.div[
            h.span(".name", title=each.uuid)[name(each.name)],
            " ",
            h.span(".muted.num")[f"generation {number(each.generation)}"],
        ],
        h.ul(".inventories")[[_inventory(one) for one in each.inventories]] if each.inventories else None,
        _traits(each.traits, at),
        each.aggregates
        and h.details[
            h.summary(".muted")[f"{number(len(each.aggregates))} aggregates in placement"],
            h.ul(".chips")[[h.li(".chip.mono")[one] for one in each.aggregates]],
        ],
    ]


def _inventory(each: InventoryRow) -> h.Node:
    of = each.resource_class
    limits = []
    if each.allocation_ratio != 1:
        limits.append(f"ratio {each.allocation_ratio:g}")
    if each.min_unit > 1 or each.step_size > 1:
        limits.append(f"from {amount(of, each.min_unit)} in steps of {amount(of, each.step_size)}")
    if not has_room(each.total, each.max_unit):
        limits.append(f"at most {amount(of, each.max_unit)} each")
    if each.reserved:
        limits.append(f"{amount(of, each.reserved)} reserved")
    return h.li[
        h.span[of],
        _bar(of, each.used, each.capacity, each.reserved, each.total),
        h.span(".num")[f"{amount(of, each.used)} of {amount(of, each.capacity)}"],
        h.span(".muted")[", ".join(limits)] if limits else None,
    ]


def _traits(traits: tuple[str, ...], at: str | None) -> h.Node:
    if not traits:
        return None
    chips = [
        h.li[h.a(".chip", href=addresses.with_query(addresses.MAP, trait=each, at=at))[each]]
        for each in traits
    ]
    if len(chips) <= _MOST_CHIPS:
        return h.ul(".chips")[chips]
    return h.details[h.summary(".muted")[f"{number(len(chips))} traits"], h.ul(".chips")[chips]]
