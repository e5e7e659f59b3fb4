"""Operations: requests in which generations are still to be filled in, so that they can be replayed.

In a body ``"@generation UUID +1"`` stands for a provider's generation at that time and one more,
``"@consumer UUID +0"`` for a consumer's, which is null if it holds nothing.
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
    """One request. ``body`` is JSON, bytes as they are, or UNSET for none."""

    method: str
    url: str
    version: int
    body: Any = None
    more: tuple[tuple[str, str], ...] = ()
    """Headers beside the usual ones, or in their place."""

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
        """The body with the generations that ``ask`` gives."""
        if self.body is None or isinstance(self.body, bytes):
            return self.body or b""
        return json.dumps(_filled_in(self.body, ask)).encode()


def generation(provider: str, off: int = 0) -> str:
    """A provider's generation, or one that is off by so many."""
    return f"@generation {provider} {off:+d}"


def consumer_generation(consumer: str, off: int = 0) -> str:
    """A consumer's generation, or one that is off by so many."""
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
