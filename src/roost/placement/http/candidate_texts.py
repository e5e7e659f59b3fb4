"""The JSON of candidates, from rows to text without a value between.

Candidates of one query differ only in which providers they name. So for each way in which the needs of the
query fall together on providers a template is made once, and then filled in with uuids.
"""

from collections.abc import Iterable, Sequence
from enum import Enum

import msgspec
import numpy as np

from roost.fleet import Fleet
from roost.fleet.candidates import Choice, Need
from roost.model.allocation import Resources
from roost.placement.http.microversions import ByVersion, Since
from roost.placement.http.provider_texts import Form, ProviderTexts, quoted


class Shape(Enum):
    """How a version shows the providers of a candidate."""

    LIST = "a list of providers"
    KEYED = "by uuid"
    MAPPED = "by uuid, and which groups each serves"


SHAPES = ByVersion({0: Shape.LIST, 12: Shape.KEYED, 34: Shape.MAPPED})

_GAP = "\0"
"""No JSON holds it unescaped."""

_Template = tuple[str, tuple[int, ...]]
"""A text with ``%s`` for each uuid, and the need whose provider goes into each."""


def candidates_text(
    needs: Sequence[Need], found: Iterable[Choice], texts: ProviderTexts, shape: Shape
) -> str:
    """The member ``allocation_requests``: a list.

    Of candidates in a row mostly just the last provider differs. Such a text is the one before with another
    uuid in it.
    """
    templates: dict[tuple[int, ...], _Template] = {}
    uuids = texts.uuids
    described = []
    before: tuple[int, ...] | None = None
    around_last: list[str] = []
    for _, rows in found:
        *_, last = rows
        if rows[:-1] == before and last not in before:
            described.append(uuids[last].join(around_last))
            continue
        # Mostly each need has a provider of its own, which is seen at less cost than how they fall together.
        pattern = () if len(set(rows)) == len(rows) else tuple(map(rows.index, rows))
        if pattern not in templates:
            templates[pattern] = _template(needs, pattern or tuple(range(len(needs))), shape)
        template, places = templates[pattern]
        if last in rows[:-1]:
            described.append(template % tuple([uuids[rows[place]] for place in places]))
            continue
        before = rows[:-1]
        around_last = (
            template % tuple([_GAP if rows[place] == last else uuids[rows[place]] for place in places])
        ).split(_GAP)
        described.append(uuids[last].join(around_last))
    return f"[{','.join(described)}]"


def _template(needs: Sequence[Need], pattern: tuple[int, ...], shape: Shape) -> _Template:
    """``pattern``: for each need the first one that has the same provider."""
    allocations: dict[int, Resources] = {}
    mappings: dict[str, list[int]] = {}
    for need, provider in zip(needs, pattern, strict=True):
        for suffix in need.suffixes:
            serving = mappings.setdefault(suffix, [])
            if provider not in serving:
                serving.append(provider)
        if need.resources:
            held = allocations.setdefault(provider, {})
            for name, amount in need.resources.items():
                held[name] = held.get(name, 0) + amount
    named = list(allocations)
    resources = [msgspec.json.encode(held).decode().replace("%", "%%") for held in allocations.values()]
    if shape is Shape.LIST:
        listed = ",".join(f'{{"resource_provider":{{"uuid":%s}},"resources":{each}}}' for each in resources)
        return f'{{"allocations":[{listed}]}}', tuple(named)
    listed = ",".join(f'%s:{{"resources":{each}}}' for each in resources)
    if shape is Shape.KEYED:
        return f'{{"allocations":{{{listed}}}}}', tuple(named)
    mapped = ",".join(
        f"{quoted(suffix).replace('%', '%%')}:[{','.join(['%s'] * len(serving))}]"
        for suffix, serving in mappings.items()
    )
    named += [provider for serving in mappings.values() for provider in serving]
    return f'{{"allocations":{{{listed}}},"mappings":{{{mapped}}}}}', tuple(named)


def summaries_text(
    fleet: Fleet, needs: Sequence[Need], found: Iterable[Choice], texts: ProviderTexts, version: int
) -> str:
    """The member ``provider_summaries``: the providers that candidates take something from; from 1.29 all
    of their trees."""
    rows: set[int] = set()
    if all(need.resources for need in needs):
        rows.update(*[choice[1] for choice in found])
    else:
        taken = [place for place, need in enumerate(needs) if need.resources]
        rows.update(choice[1][place] for choice in found for place in taken)
    asked = dict.fromkeys(name for need in needs for name in need.resources)
    form = Form(
        classes=None if version >= Since.SUMMARY_OF_ALL_CLASSES else tuple(asked),
        traits=version >= Since.SUMMARY_TRAITS,
        tree=version >= Since.CANDIDATES_IN_TREES,
    )
    if version >= Since.CANDIDATES_IN_TREES and fleet.has_trees:
        roots = np.unique(fleet.root[np.fromiter(rows, dtype=np.intp, count=len(rows))])
        return texts.summaries_of_trees(fleet, roots.tolist(), form)
    return texts.summaries(fleet, sorted(rows), form)
