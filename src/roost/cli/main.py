"""``roost``: the group of all commands, and the entry point of the program."""

import contextlib
import ctypes
import gc
import importlib
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import click

import roost
from roost.cli.command_group import CommandGroup
from roost.cli.failures import describe_failure, tell_failure
from roost.cli.standard_streams import repair_standard_streams
from roost.model.errors import OperatorError
from roost.process.logs import configure_logs

_M_TRIM_THRESHOLD = -1
_M_TOP_PAD = -2
_M_MMAP_THRESHOLD = -3
_KEPT_BYTES = 64 * 2**20
"""Free bytes that glibc keeps at the top of the heap; also the size from which an array is mapped alone."""
_GROWTH_BYTES = 2**20
"""Least growth of the heap in bytes."""


def keep_freed_memory() -> None:
    """Have glibc keep freed memory. Does nothing with another C library.

    A decision on 10,000 hosts allocates and frees arrays of 80 kB. By default glibc returns the top of its
    heap to the system each time; the page faults at the next array then took a third of a decision's time.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
    mallopt(_M_TOP_PAD, _GROWTH_BYTES)
    mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)


COMMANDS = {
    "agent": "roost.cli.agent:agent",
    "aggregate": "roost.cli.aggregate:aggregate",
    "archive-records": "roost.cli.archived_records:archive_records",
    "ask": "roost.cli.ask:ask",
    "audit": "roost.cli.audit:audit",
    "bench": "roost.bench.commands:bench",
    "cell-conductor": "roost.cli.programs:cell_conductor",
    "cell": "roost.cli.cell:cell",
    "completion": "roost.cli.completion:completion",
    "conductor": "roost.cli.programs:conductor",
    "config": "roost.cli.config:config",
    "dashboard": "roost.cli.programs:dashboard",
    "db": "roost.cli.db:db",
    "doctor": "roost.cli.doctor:doctor",
    "events": "roost.cli.events:events",
    "host": "roost.cli.host:host",
    "instance": "roost.cli.instance:instance",
    "man": "roost.cli.man:man",
    "map": "roost.cli.fleet_map:fleet_map",
    "metrics": "roost.cli.metrics:metrics",
    "maintenance": "roost.cli.maintenance:maintenance",
    "move": "roost.cli.move:move",
    "neighbours": "roost.cli.programs:neighbours",
    "node": "roost.cli.node:node",
    "nova-scheduler": "roost.cli.nova_scheduler:nova_scheduler",
    "records": "roost.cli.records:records",
    "redfish": "roost.cli.redfish:redfish",
    "replay": "roost.bench.replay.command:replay",
    "replay-decision": "roost.cli.replay_decision:replay_decision",
    "restore-records": "roost.cli.archived_records:restore_records",
    "scheduler": "roost.cli.programs:scheduler",
    "serve": "roost.cli.programs:serve",
    "server-group": "roost.cli.server_group:server_group",
    "service": "roost.cli.service:service",
    "status": "roost.cli.status:status",
    "token": "roost.cli.token:token",
    "top": "roost.cli.top:top",
    "up": "roost.cli.up:up",
}
"""The module and the attribute of each command. The module is imported when the command is used."""


class _Commands(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        with _no_collection():
            command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from error

    def main(
        self, args: Sequence[str] | None = None, *others: Any, standalone_mode: bool = True, **named: Any
    ) -> Any:
        run = partial(super().main, args, *others, standalone_mode=False, **named)
        if not standalone_mode:
            return run()
        status: object
        try:
            status = run()
        except (OperatorError, click.ClickException) as error:
            status = describe_failure(error, sys.argv[1:] if args is None else args)
        return sys.exit(status if isinstance(status, int) else 0)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Import without garbage collection, which would traverse the imported modules repeatedly."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


@click.command(
    cls=_Commands,
    epilog="Example: roost up --port 8778 --data-dir ./roost-data --hosts 100 --cells 3",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(roost.__version__, prog_name="roost")
def roost_command() -> None:
    """Decides where workloads run and records what they use.

    Exit status: 0 done, 1 refused or found something wrong, 2 could not run, 130 interrupted.
    """


def main() -> None:
    """Run a command, and end the process with its exit status."""
    repair_standard_streams()
    try:
        configure_logs()
        keep_freed_memory()
        status = _run()
        sys.stdout.flush()
    except BaseException as error:
        status = tell_failure(error, sys.argv[1:])
    sys.exit(status)


def _run() -> int:
    """Run a command, and return its exit status. Raises the error that ends it."""
    try:
        status = roost_command.main(prog_name="roost", standalone_mode=False)
    except SystemExit as ended:
        status = ended.code
    return status if isinstance(status, int) else 0
