"""Lists: the form that searches, the table, and the way to the next page."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, Literal

import htpy as h
from markupsafe import Markup, escape

from roost.dashboard.addresses import with_query
from roost.dashboard.html.values import number

Order = Literal["ascending", "descending"]

MOST_SUGGESTIONS: Final = 16
"""Lists of suggestions that are kept: those of the filters by rack, trait, aggregate and flavor."""


MOST_TAGS: Final = 512
"""Opening tags of cells that are kept: one for each column of each page."""


def search_field(name: str, label: str, value: str | None, *, placeholder: str = "") -> h.Element:
    """Return a field of a search form."""
    return h.div(".field")[
        h.label(for_=f"q-{name}")[label],
        h.input(
            id=f"q-{name}",
            type="search",
            name=name,
            value=value or "",
            placeholder=placeholder,
            maxlength="255",
            autocomplete="off",
            spellcheck="false",
        ),
    ]


def text_field(name: str, label: str, value: str | None, *, type: str = "text", step: str = "") -> h.Element:
    """Return a field of a search form for one exact value."""
    return h.div(".field")[
        h.label(for_=f"q-{name}")[label],
        h.input(
            id=f"q-{name}",
            type=type,
            name=name,
            value=value or "",
            maxlength="255" if type == "text" else None,
            size="16" if type == "text" else None,
            step=step or None,
            autocomplete="off",
            spellcheck="false",
        ),
    ]


def choice_field(
    name: str, label: str, value: str | None, choices: Iterable[tuple[str, str]], *, every: str | None
) -> h.Element:
    """Return a choice of a search form.

    ``choices``: value and words. ``every``: the words for no choice; None: there has to be one. A value that
    is no choice is one more, so that the form shows what the page shows.
    """
    known = list(choices)
    if value and all(value != each for each, _ in known):
        known.append((value, value))
    return h.div(".field")[
        h.label(for_=f"q-{name}")[label],
        h.select(id=f"q-{name}", name=name)[
            None if every is None else h.option(value="", selected=not value)[every],
            [h.option(value=each, selected=each == value)[words] for each, words in known],
        ],
    ]


def suggested_field(name: str, label: str, value: str | None, known: Sequence[str]) -> h.Element:
    """Return a field of a search form that takes any text and suggests known ones."""
    return h.div(".field")[
        h.label(for_=f"q-{name}")[label],
        h.input(
            id=f"q-{name}",
            name=name,
            value=value or "",
            list=f"known-{name}" if known else None,
            placeholder="any",
            maxlength="255",
            size="8",
            autocomplete="off",
            spellcheck="false",
        ),
        h.datalist(id=f"known-{name}")[suggestions(tuple(known))] if known else None,
    ]


@lru_cache(MOST_SUGGESTIONS)
def suggestions(known: tuple[str, ...]) -> Markup:
    """Return the options of a field that suggests texts, which are made once as long as they are the same."""
    return Markup(h.fragment[[h.option(value=each) for each in known]])


def search_form(path: str, *fields: h.Node, kept: Sequence[tuple[str, str | None]] = ()) -> h.Element:
    """Return a form that loads a list anew. ``kept``: further parameters of its address."""
    return h.form(".filter-form", action=path, role="search", aria_label="This list")[
        [h.input(type="hidden", name=name, value=value) for name, value in kept if value],
        fields,
        h.button(".button", type="submit")["Show"],
        h.a(".button.quiet", href=with_query(path, **dict(kept)))["Clear"],
    ]


def table(
    label: str, heads: Sequence[h.Node], rows: Iterable[h.Element], *, id: str | None = None
) -> h.Element:
    """Return a table, whose rows are cards in a narrow window. ``heads``: cells of its head, or texts."""
    return h.div(".table-wrap", id=id, tabindex="0", role="group", aria_label=label)[
        h.table(".table.stacks")[
            h.thead[h.tr[[h.th(scope="col")[each] if isinstance(each, str) else each for each in heads]]],
            # As text at once: an element is rendered through the generators of all elements around it.
            h.tbody[Markup("".join(map(str, rows)))],
        ]
    ]


def head(title: str, *, numeric: bool = False) -> h.Element:
    """Return the head of a column that the server does not sort by."""
    return h.th(class_="num" if numeric else None, scope="col")[title]


def sorted_head(title: str, address: str, order: Order | None, *, numeric: bool = False) -> h.Element:
    """Return the head of a column that the server sorts by.

    ``address``: the same list, sorted by this column. ``order``: None: it is sorted by another one.
    """
    link = h.a(href=address, title=f"Sort by {title}")[title]
    return h.th(class_="num" if numeric else None, scope="col", aria_sort=order)[link]


def cell(label: str, *content: h.Node, numeric: bool = False) -> Markup:
    """Return a cell of a table. ``label``: the head of its column, for rows that are cards."""
    shown = [each for each in content if each]
    whole: h.Node = h.div[shown] if len(shown) > 1 else shown[0] if shown else None
    inner = escape(whole) if isinstance(whole, str | h.Element) else Markup(h.fragment[whole])
    # Most of the time of a page is that of its cells, whose tags are few.
    return Markup(f"{_opened(label, numeric)}{inner}</td>")


@lru_cache(MOST_TAGS)
def _opened(label: str, numeric: bool) -> str:
    """Return the opening tag of a cell."""
    return str(h.td(class_="num" if numeric else None, data_label=label)).removesuffix("</td>")


def pager(shown: int, what: str, first: str | None, following: str | None) -> h.Element:
    """Return the foot of a list.

    ``first``: the address of its first page, None on that. ``following``: of the next page, None on the last.
    """
    return h.div(".pager")[
        h.span[f"{number(shown)} {what}" + (", more follow" if following else "")],
        first and h.a(".button.small", href=first)["First page"],
        following and h.a(".button.small", href=following, rel="next")["Next page"],
    ]


def numbered_pager(
    what: str, total: int, page: int, size: int, address: Callable[[int], str], *, label: str = "Pages"
) -> h.Node:
    """Return the foot of a list whose pages have numbers; nothing if there is one page.

    Args:
        what: The things that are listed, such as "hosts".
        total: Their number.
        page: The number of the page, from 1.
        size: Things on a page at most.
        address: Returns the address of a page.
        label: Names the pager, if a page has several.
    """
    last = -(-total // size)
    if last <= 1:
        return None
    first = (page - 1) * size + 1
    return h.nav(".pager", aria_label=label)[
        h.span[f"{number(first)} to {number(min(total, page * size))} of {number(total)} {what}"],
        h.a(".button.small", href=address(1))["First page"] if page > 2 else None,
        h.a(".button.small", href=address(page - 1), rel="prev")["Previous page"] if page > 1 else None,
        h.a(".button.small", href=address(page + 1), rel="next")["Next page"] if page < last else None,
    ]


def empty(title: str, *text: h.Node) -> h.Element:
    """Return the text of a list that has nothing."""
    return h.div(".empty")[h.h2[title], [h.p[each] for each in text if each]]
