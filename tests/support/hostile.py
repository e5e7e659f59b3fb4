"""Hostile text, and the check that a page shows it as text."""

from collections.abc import Iterator
from html.parser import HTMLParser

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "attribute": '" onmouseover="alert(1)" hx-on:load=\'alert(1)',
    "bidi": "\u202egnp.exe\u2066 host\u2067",
    "long": "n" * 1000,
    "emoji": "\U0001f469‍\U0001f4bb\U0001f3f4‍☠️",
    "newline": "one\ntwo\r\n\tthree",
    "template": "{{7*7}} ${7*7} %{x} &lt;b&gt;",
}
"""Names that tenants, agents and operators might give, by what is wrong with them."""

_EMPTY = {"meta", "link", "input", "br", "hr", "img"}
_DIRECTED = ("bdi", "title", "option", "textarea")
"""Elements that isolate the direction of their text, or show it alone."""


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[tuple[str, tuple[str, ...]]] = []
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> within {self.open}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((data, tuple(self.open)))


def check_shown_as_text(html: str, *hostile: str) -> None:
    """Check that a part of a page shows hostile texts as text alone, each isolated in its direction."""
    page = _Elements()
    page.feed(html)
    page.close()
    assert page.open == [], f"not closed: {page.open}"
    assert "script" not in page.names
    handlers = {each for each in page.attributes if each.startswith(("on", "hx-on", "style"))}
    assert not handlers, handlers
    for text in hostile:
        shown = list(_around(page, text))
        assert shown, f"not shown: {text[:40]!r}"
        for elements in shown:
            assert any(each in _DIRECTED for each in elements), f"{text[:40]!r} in {elements}"


def _around(page: _Elements, text: str) -> Iterator[tuple[str, ...]]:
    for data, elements in page.texts:
        if text.strip() in data:
            yield elements
