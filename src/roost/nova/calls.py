"""The calls and casts that Nova sends to its scheduler, and the errors that it knows.

Source: ``nova.scheduler.rpcapi`` 4.5 and ``nova.exception``, Nova 34.0.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

RefusalKind = Literal["NoValidHost", "AllocationUpdateFailed"]
"""The class of a refusal as Nova has it. Nova's conductor knows no other of a scheduler's."""


class SelectCall(msgspec.Struct, frozen=True):
    """A call of ``select_destinations``.

    - ``spec``: Nova's RequestSpec as oslo.versionedobjects serialises it.
    - ``instances``: uuids. The response has a list for each, in this order.
    - ``objects``: the response has Selection objects; else the plain dicts of Nova before them.
    - ``alternates``: each list has alternates after the claimed host.
    - ``request_id``, ``global_request_id``, ``project``, ``user``: of the user's request. Nothing else of its
      context is kept, because that has the user's token.
    """

    spec: dict[str, Any]
    instances: tuple[str, ...]
    objects: bool = True
    alternates: bool = True
    request_id: str | None = None
    global_request_id: str | None = None
    project: str | None = None
    user: str | None = None


class NovaRefusal(Exception):
    """An error that Nova's caller gets as one of Nova's own exceptions.

    ``kind``: its class in ``nova.exception``. ``kwargs``: the arguments of its message, of which Nova shows
    the text to the user: short, and without names of hosts.
    """

    def __init__(self, kind: RefusalKind, **kwargs: str) -> None:
        super().__init__(kwargs.get("reason") or kwargs.get("error") or kind)
        self.kind = kind
        self.kwargs: Mapping[str, str] = kwargs


def no_valid_host(reason: str) -> NovaRefusal:
    """Return the refusal that all of Nova's callers handle."""
    return NovaRefusal("NoValidHost", reason=reason)


class DecideCall(Protocol):
    """Decides a call. Returns a list of serialised selections for each instance, the claimed one first."""

    async def __call__(self, call: SelectCall) -> list[list[dict[str, Any]]]:
        """Raises `NovaRefusal`, and no other error that is not a fault of the program."""


class Hints(Protocol):
    """Takes note that rows of Nova's databases have changed, as computes and the API say by casts.

    A cast may be lost: each row is read again within seconds without it. The methods return at once, raise
    nothing, and may be called from any thread.
    """

    def node_changed(self, host: str) -> None:
        """The row of a compute node of ``host`` has changed."""

    def instances_changed(self, host: str) -> None:
        """Instances of ``host`` have changed."""

    def aggregates_changed(self) -> None:
        """An aggregate has changed."""
