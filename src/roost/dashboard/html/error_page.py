"""The pages of errors, and the page that loads itself again."""

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.assets import asset
from roost.dashboard.html.shell import Viewing, page_head, shell


def error_page(viewing: Viewing, status: int, title: str, text: str, request_id: str) -> str:
    """Return the page of an error: the sentence, and the id under which the log has the request."""
    content = (
        page_head(f"{status} {title}"),
        h.div(".notice.state-fails", role="alert")[h.p[text]],
        h.p(".muted")["Request ", h.code[request_id]],
        h.p[h.a(href=addresses.ROOT)["To the overview"]],
    )
    return shell(viewing, title, content)


def reload_page(address: str) -> str:
    """Return a page that loads an address of the dashboard at once, as a request of its own."""
    page = h.html(lang="en")[
        h.head[
            h.meta(charset="utf-8"),
            h.meta(http_equiv="refresh", content=f"0; url={address}"),
            h.title["Roost"],
            h.link(rel="stylesheet", href=asset("roost.css")),
        ],
        h.body[h.p[h.a(href=address)["Go on"]]],
    ]
    return f"{page}"
