"""Pages that have nothing to show: the reason in place of their content."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import htpy as h

from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.views.absence import is_absent


def unless_absent(title: str, html: Callable[[Any, Viewing], h.Node]) -> Callable[[Any, Viewing], h.Node]:
    """Return the HTML of a page, and the reason in its place if it has nothing to show."""

    @wraps(html)
    def made(view: Any, viewing: Viewing) -> h.Node:
        if is_absent(view):
            return [page_head(title), h.div(".notice.state-note")[h.p[view.absent]]]
        return html(view, viewing)

    return made
