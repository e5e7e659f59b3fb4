"""Tables of contents of the site, from the links of a page.

A page with the line ``<!-- contents -->`` lists other pages in tables or lists: the first link of each row or
item is an entry of the site's table of contents. So the same list serves readers of the repository, where a
page that is made from the code is a title without a link.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final

from document_site.markdown import toctree

MARK: Final = "<!-- contents -->\n"

_UNLINKED = re.compile(r"^\| (?P<title>[^|\[\]]+) \|", re.MULTILINE)
_ENTRY = re.compile(r"^(?:\|\s*|[-*]\s+)\[([^\[\]]+)\]\(([^)\s#:]+)\.md\)", re.MULTILINE)


def with_contents(page: str, text: str, made: Mapping[str, str]) -> str:
    """Return a page with its table of contents, which is not shown; unchanged if the page has no mark.

    ``page``: its path in the site. ``made``: title and path of the pages that are made from the code.
    """
    if MARK not in text:
        return text

    def link(found: re.Match[str]) -> str:
        path = made.get(found["title"])
        if path is None:
            return found[0]
        return f"| [{found['title']}]({posixpath.relpath(path, posixpath.dirname(page) or '.')}) |"

    linked = _UNLINKED.sub(link, text)
    return f"{linked.rstrip()}\n\n{toctree(entries(linked))}"


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield the title and the page of each entry of a page with contents."""
    for title, target in _ENTRY.findall(text):
        yield title.replace("`", ""), posixpath.normpath(target)
