"""The built site, as a browser reads it: links, anchors, and what a page loads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_LOADED: Final = {
    "link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "form": "action",
    "video": "src", "audio": "src", "object": "data", "embed": "src", "use": "href",
}  # fmt: skip
"""Element -> the attribute whose address the browser loads, or sends the reader's words to."""


@dataclass
class BuiltPage(HTMLParser):
    """A page: the links in it, the addresses that it loads, its anchors and its text."""

    path: Path
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if values.get("id"):
            self.anchors.add(str(values["id"]))
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        if tag in _LOADED and (address := values.get(_LOADED[tag])):
            self.loaded.append(address)

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @cached_property
    def text(self) -> str:
        """All text, with single spaces."""
        return " ".join("".join(self.words).split())


class BuiltSite:
    """All pages of a site that was built into ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def pages(self) -> Mapping[str, BuiltPage]:
        """The pages by path, such as ``guides/nova.html``."""
        return {
            path.relative_to(self.folder).as_posix(): BuiltPage(path)
            for path in sorted(self.folder.rglob("*.html"))
            if not path.is_relative_to(self.folder / "_static")
        }

    def broken_links(self) -> Iterator[str]:
        """Yield page and target of each link within the site that leads nowhere."""
        for name, page in self.pages.items():
            for link in {*page.links, *page.loaded}:
                parts = urlsplit(link)
                if parts.scheme or parts.netloc:
                    continue
                file = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
                target = self.pages.get(file.relative_to(self.folder).as_posix()) if file.exists() else None
                anchor = unquote(parts.fragment)
                if not file.is_file() or (anchor and target is not None and anchor not in target.anchors):
                    yield f"{name}: {link}"
