"""Requests that come through proxies: the scheme, host, path prefix and address that the client used.

A proxy reports them in ``Forwarded`` (RFC 7239) or in ``X-Forwarded-Proto``, ``-Host`` and ``-For``, and
the prefix in ``X-Forwarded-Prefix``. Links and locations in responses are then reachable for the client.

The headers of a request are believed together or not at all: if one value is malformed, the request is taken
as it arrived. With a list of trusted proxies, headers are believed only if the peer is in the list, and only
the values that trusted proxies have added. Without a list every peer is believed, and of several values the
first counts, which the proxy next to the client has written.

Source: oslo.middleware's ``http_proxy_to_wsgi``, which also prefers ``Forwarded``.
"""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import falcon
import falcon.asgi
import msgspec

from roost.web.request import Request

Scope = dict[str, Any]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
R = TypeVar("R", bound=Request)

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"
_QUOTED = r'"(?:[\t !#-\[\]-~]|\\[\t !-~])*+"'
_PAIR = rf"{_TOKEN}=(?:{_TOKEN}|{_QUOTED})"
_BLANK = r"[ \t]*+"
_ELEMENT = rf"{_BLANK}{_PAIR}{_BLANK}(?:;{_BLANK}(?:{_PAIR}{_BLANK})?)*+"
_FORWARDED = re.compile(rf"{_ELEMENT}(?:,{_ELEMENT})*+")
_HOST = re.compile(r"(?:[0-9A-Za-z][0-9A-Za-z._-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PREFIX = re.compile(r"(?:/[0-9A-Za-z._~!$&'()*+,;=:@%-]+)*/?")
_NODE = re.compile(
    r"(?:(?P<v4>[0-9.]+)|\[(?P<v6>[0-9A-Fa-f:.]+)\]|unknown|_[0-9A-Za-z._-]+)(?::[0-9A-Za-z._-]+)?"
)


class _Malformed(Exception):
    """A header has a value that cannot be believed."""


class _Hop(msgspec.Struct, frozen=True):
    """The report of one proxy on the request that it received. None: not reported."""

    scheme: str | None = None
    host: str | None = None
    node: str | None = None


class Proxies(msgspec.Struct, frozen=True):
    """The proxies whose headers are believed. Without any in ``trusted``, every peer is believed."""

    trusted: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Proxies":
        """Parse addresses and networks (CIDR). Raises `ValueError`."""
        return cls(tuple(ipaddress.ip_network(text.strip()) for text in texts))

    def restore(self, scope: Scope) -> Scope:
        """Return the ASGI scope of the request as the client sent it to the first proxy that is believed."""
        client = scope.get("client")
        if self.trusted and not (client and self._trusts(client[0])):
            return scope
        # ASGI servers may pass iterables that can be read only once.
        scope = {**scope, "headers": [(name, value) for name, value in scope["headers"]]}
        request = falcon.asgi.Request(scope, _receive)
        try:
            hop = self._hop(request)
            prefix = _checked(_PREFIX, request.get_header("x-forwarded-prefix"))
        except _Malformed:
            return scope
        sent = dict(scope)
        if hop.scheme:
            sent["scheme"] = hop.scheme
        if hop.host:
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            sent["headers"] = [*others, (b"host", hop.host.encode())]
        if hop.node:
            sent["client"] = (_address(hop.node) or hop.node, 0)
        if prefix:
            sent["root_path"] = prefix + scope.get("root_path", "")
        return sent

    def _hop(self, request: falcon.asgi.Request) -> _Hop:
        header = request.get_header("forwarded")
        if header:
            if not _FORWARDED.fullmatch(header):
                raise _Malformed
            hops = [_hop(each.scheme, each.host, each.src) for each in request.forwarded or ()]
            return hops[self._first_believed([hop.node for hop in hops])]
        names = ("x-forwarded-proto", "x-forwarded-host", "x-forwarded-for")
        values = [(request.get_header(name) or "").split(",") for name in names]
        # A trusted proxy appends its value. The values before it may come from the client.
        place = -1 if self.trusted else 0
        return _hop(*(several[place].strip() or None for several in values))

    def _first_believed(self, nodes: Sequence[str | None]) -> int:
        """Return the index of the report to believe: the earliest that a trusted proxy has added.

        Each report was added by the node that the next one names.
        """
        if not self.trusted:
            return 0
        index = len(nodes) - 1
        while index > 0 and self._trusts(_address(nodes[index] or "")):
            index -= 1
        return index

    def _trusts(self, address: str | None) -> bool:
        try:
            found = ipaddress.ip_address(address or "")
        except ValueError:
            return False
        return any(found in network for network in self.trusted)


def through_proxies(request_type: type[R], proxies: Proxies) -> type[R]:
    """Return a subclass of a request type that reads every request as `Proxies.restore` returns it."""

    class Restored(request_type):  # type: ignore[misc, valid-type]
        __slots__ = ()

        def __init__(self, scope: Scope, *args: object, **kwargs: object) -> None:
            super().__init__(proxies.restore(scope), *args, **kwargs)

    return Restored


def _hop(scheme: str | None, host: str | None, node: str | None) -> _Hop:
    """Make the report of a proxy, with all values checked. Raises `_Malformed`."""
    if scheme is not None and scheme not in ("http", "https"):
        raise _Malformed
    if node is not None and _address(node) is None:
        _checked(_NODE, node)
    return _Hop(scheme, _checked(_HOST, host), node)


def _checked(form: re.Pattern[str], text: str | None) -> str | None:
    if text and not form.fullmatch(text):
        raise _Malformed
    return text or None


def _address(node: str) -> str | None:
    """Return the IP address in a node, without its port; None if the node has none."""
    found = _NODE.fullmatch(node)
    text = (found["v4"] or found["v6"]) if found else node
    try:
        return str(ipaddress.ip_address(text or ""))
    except ValueError:
        return None


async def _receive() -> dict[str, Any]:
    """Return an empty message: only the headers of a request are read here, never its body."""
    raise NotImplementedError
