"""Operations: requests with placeholders for generations, so that they can be repeated in another state.

In a body, ``"@generation UUID +1"`` stands for the current generation of a provider plus one, and
``"@consumer UUID +0"`` for that of a consumer, which is null for one without allocations.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from support.wsgi import Answer

Ask = Callable[[str, str, bytes, dict[str, str]], Answer]

_CURRENT = re.compile(r"@(generation|consumer) (\S+) ([+-]\d+)")
LATEST = 39


@dataclass(frozen=True)
class Operation:
    """A request. ``body`` is JSON data, or the bytes to send, or None for no body."""

    method: str
    url: str
    version: int
    body: Any = None
    more: tuple[tuple[str, str], ...] = ()
    """Headers that are added to the usual ones or replace them."""

    def __str__(self) -> str:
        body = "" if self.body is None else f" {self.body!r}"
        return f"1.{self.version} {self.method} {self.url}{body}" + "".join(map(str, self.more))

    @property
    def headers(self) -> dict[str, str]:
        sent = {"x-auth-token": "admin", "openstack-api-version": f"placement 1.{self.version}"}
        return {
            **sent,
            **({} if self.body is None else {"content-type": "application/json"}),
            **dict(self.more),
        }

    def fill_in(self, ask: Ask) -> bytes:
        """Return the body with the current generations, for which it queries the service."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body or b""
        return json.dumps(_filled_in(self.body, ask)).encode()


def generation(provider: str, off: int = 0) -> str:
    """Return the placeholder of a provider's generation plus ``off``."""
    return f"@generation {provider} {off:+d}"


def consumer_generation(consumer: str, off: int = 0) -> str:
    """Return the placeholder of a consumer's generation plus ``off``."""
    return f"@consumer {consumer} {off:+d}"


def _filled_in(value: Any, ask: Ask) -> Any:
    if isinstance(value, dict):
        return {name: _filled_in(each, ask) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled_in(each, ask) for each in value]
    asked_for = _CURRENT.fullmatch(value) if isinstance(value, str) else None
    if asked_for is None:
        return value
    kind, uuid, off = asked_for.groups()
    url = f"/resource_providers/{uuid}" if kind == "generation" else f"/allocations/{uuid}"
    answer = Operation("GET", url, LATEST)
    found = ask(answer.method, answer.url, b"", answer.headers).json
    if kind == "generation":
        return found.get("generation", 0) + int(off)
    current = found.get("consumer_generation")
    return current if not int(off) else (current or 0) + int(off)
