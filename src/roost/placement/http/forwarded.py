"""Requests that come through a proxy: what it says of the client's scheme, host, address and path.

With ``enable_proxy_headers_parsing`` the headers are believed as upstream believes them: Forwarded (RFC 7239,
of several proxies the first), or else X-Forwarded-Proto, -Host and -For; X-Forwarded-Prefix either way. Links
and locations in answers are then what the client can reach.
"""

from collections.abc import Iterable
from typing import Any

from roost.placement.http.request import Request

Scope = dict[str, Any]


class ForwardedRequest(Request):
    """A request as it was sent to the proxy."""

    def __init__(self, scope: Scope, *args: object, **kwargs: object) -> None:
        super().__init__(as_sent(scope), *args, **kwargs)


def as_sent(scope: Scope) -> Scope:
    """The ASGI scope of the request that the proxy got."""
    raw = [(name, value) for name, value in scope["headers"]]
    headers = _headers(raw)
    forwarded = headers.get("forwarded")
    if forwarded:
        first = _first_proxy(forwarded)
        scheme, host, client = (first.get(name) for name in ("proto", "host", "for"))
    else:
        scheme, host, client = (headers.get(f"x-forwarded-{name}") for name in ("proto", "host", "for"))
    sent = {**scope, "headers": raw}
    if scheme:
        sent["scheme"] = scheme
    if host:
        others = [(name, value) for name, value in raw if name != b"host"]
        sent["headers"] = [*others, (b"host", host.encode("latin-1"))]
    if client:
        sent["client"] = (client, 0)
    sent["root_path"] = headers.get("x-forwarded-prefix", "") + scope.get("root_path", "")
    return sent


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers; one that is there several times is a list."""
    found: dict[str, str] = {}
    for name, value in raw:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]},{text}" if key in found else text
    return found


def _first_proxy(forwarded: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in forwarded.partition(",")[0].split(";"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
