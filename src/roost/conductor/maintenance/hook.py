"""The hook of maintenances: a command or a URL of the operator's, called for each host that is empty.

A host is given back after a call that has not failed. The hook is called at least once for each host, and
again after a failure, and when the process that called it has died: then an earlier call may be under way
still. So a hook does for a host what is left to do, and nothing if nothing is. All calls for a host in a
maintenance have one key, by which a hook, or what it asks, knows that work.
"""

import uuid
from typing import Protocol

import msgspec

from roost.conductor.backoff import Backoff
from roost.model.errors import OperatorError
from roost.model.maintenance import HookResult
from roost.process.command import words_of
from roost.process.options import OptionStruct, option

OF_WORK = uuid.UUID("b0a8b7c6-2f0e-4b57-9f0c-6a3f5f1f6c52")
"""The namespace of the keys of works on hosts."""

KEY_VARIABLE, CALL_VARIABLE = "ROOST_MAINTENANCE_KEY", "ROOST_MAINTENANCE_CALL"
"""The environment variables of a command that have the key of the work, and the number of the call."""


class MaintenanceOptions(OptionStruct, frozen=True, kw_only=True, group="maintenance"):
    """The options of maintenances."""

    command: tuple[str, ...] = option(
        "",
        name="hook_command",
        parse=words_of("[maintenance] hook_command"),
        help="This program is run for each host of a maintenance that is empty, with its arguments and three "
        "more: the host, its cell, and the uuid of the maintenance. No shell is used. ROOST_MAINTENANCE_KEY "
        "of its environment is the same uuid in all calls for a host, which may run beside each other, and "
        "ROOST_MAINTENANCE_CALL the number of the call. The host is given back when it ends with status 0. "
        "Without a command and without a URL a maintenance waits for `roost maintenance done HOST`.",
    )
    url: str | None = option(
        None,
        name="hook_url",
        secret=True,
        help="A POST is sent to this URL for each host that is empty, with a JSON object of the texts "
        "maintenance, host and cell and the number call. Its header Idempotency-Key is the same uuid in all "
        "calls for a host, which may run beside each other. The host is given back when the status of the "
        "response is between 200 and 299.",
    )
    seconds: float = option(
        3600.0,
        name="hook_seconds",
        min=1.0,
        help="Time limit of a call of the hook. A command that runs longer is killed; the call has failed.",
    )
    tries: int = option(
        3,
        name="hook_tries",
        min=1,
        help="After so many failed calls for a host, the maintenance leaves the host out.",
    )
    pause_seconds: float = option(
        30.0,
        name="hook_pause_seconds",
        min=0.0,
        help="Seconds before a call that failed is repeated; twice as many after each further failure.",
    )
    at_once: int = option(
        20, name="hook_calls", min=1, help="Calls of the hook that a process has under way at once."
    )
    stuck_seconds: float = option(
        900.0,
        min=0.0,
        help="A host is left out of a maintenance when no instance has left it for so long, and none of "
        "those that are there can move; after as long again, if something is waited for that does not go on: "
        "a move, a host that is to do something, a turn. A maintenance of which no further host can be "
        "emptied waits as long. It is longer than build_seconds_limit, in which moves end.",
    )

    @property
    def backoff(self) -> Backoff:
        """The pauses after calls that failed."""
        return Backoff(first_seconds=self.pause_seconds, longest_seconds=max(900.0, self.pause_seconds))

    def check(self) -> None:
        """Check that there is one hook at most. Raises `OperatorError`."""
        if self.command and self.url is not None:
            raise OperatorError("[maintenance] has hook_command and hook_url: there is one hook")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise OperatorError("[maintenance] hook_url is no URL of HTTP")


class HookCall(msgspec.Struct, frozen=True):
    """A call of the hook for a host. ``number``: of the calls for it in this maintenance, from 1."""

    maintenance: str
    host: str
    cell: str
    number: int

    @property
    def idempotency_key(self) -> str:
        """The uuid of the work on the host in this maintenance: the same for each call."""
        return str(uuid.uuid5(OF_WORK, f"{self.maintenance}/{self.host}"))

    @property
    def key(self) -> tuple[str, str]:
        """The maintenance and the host."""
        return self.maintenance, self.host


class MaintenanceHook(Protocol):
    """Calls the hook."""

    async def call(self, call: HookCall) -> HookResult:
        """Call the hook, and return how that ended. A cancelled call ends the command."""

    async def stop(self, call: HookCall) -> None:
        """End a call that is under way, so that it fails."""
