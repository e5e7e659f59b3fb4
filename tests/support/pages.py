"""Pages as text, without a server."""

from typing import Any

from roost.dashboard.html.shell import Viewing
from roost.dashboard.page import Page


def html_of(page: Page, view: Any, viewing: Viewing) -> str:
    """Return the content of a page."""
    return "".join(map(str, _flat(page.html(view, viewing))))


def _flat(node: object) -> list[object]:
    if isinstance(node, list | tuple):
        return [one for each in node for one in _flat(each)]
    return [] if node is None or node is False else [node]
