"""Checks of each request: the name that it is for, and the page that sends it.

The dashboard may run without authentication on 127.0.0.1, and browsers send requests of foreign pages there.
A foreign page is kept out by its origin; one whose name was pointed at this address (DNS rebinding) by the
name in ``Host``, which is the page's own.
"""

from collections.abc import Collection
from urllib.parse import urlsplit

from roost.dashboard.session.authenticator import SAFE_METHODS
from roost.web.errors import Forbidden, HTTPError
from roost.web.request import Request, Response


class ForeignName(HTTPError):
    """The request is for a name that the dashboard is not reached by."""

    status = 421
    code = "dashboard.foreign_name"


class ForeignPage(Forbidden):
    """A page of another origin has sent a request that changes something."""

    code = "dashboard.foreign_page"


class RequestGuard:
    """Middleware that refuses requests for foreign names, and those of foreign pages that change something.

    ``hosts``: the permitted names, without ports, in lower case.
    """

    def __init__(self, hosts: Collection[str]) -> None:
        self._hosts = frozenset(name.lower() for name in hosts)

    async def process_request(self, req: Request, resp: Response) -> None:
        """Check a request. Raises `ForeignName`, `ForeignPage`."""
        named = req.get_header("host") or ""
        if host_of(named) not in self._hosts:
            raise ForeignName(
                f"The dashboard is not reached by the name {named[:100]!r}: names are in [dashboard] hosts."
            )
        if req.method in SAFE_METHODS:
            return
        site = req.get_header("sec-fetch-site")
        if site not in (None, "same-origin"):
            raise ForeignPage(f"The request comes from another page (Sec-Fetch-Site: {site[:40]}).")
        origin = req.get_header("origin")
        if origin is None and site is None:
            # Programs send neither; a browser sends one of them with each request of this kind.
            return
        if origin is not None and urlsplit(origin).netloc.lower() != named.lower():
            raise ForeignPage(f"The request comes from another page (Origin: {origin[:100]}).")


def host_of(named: str) -> str:
    """Return the name in a ``Host`` header, without the port, in lower case."""
    name = named.strip().lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]
