"""The worker processes of a service: the options that ``roost serve`` and ``roost scheduler`` share."""

from collections.abc import Callable
from functools import reduce

import click

from roost.cli.numbers import Number, WholeNumber
from roost.server.workers.processors import count_processors

MIB = 1 << 20


WORKERS_OF_A_PROCESSOR = 16
LEAST_MOST_WORKERS = 64


def most_workers() -> int:
    """Return the most worker processes that a service may have on this machine.

    Each takes memory, and beyond some for each processor further ones do not make the service faster.
    """
    return max(LEAST_MOST_WORKERS, WORKERS_OF_A_PROCESSOR * count_processors())


class WorkerCount(click.ParamType[int]):
    """A positive number of worker processes, or ``auto``."""

    name = "number|auto"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "auto":
            return count_processors()
        return int(WholeNumber(1, most_workers()).convert(value, param, ctx))


_OPTIONS = (
    click.option(
        "--workers",
        type=WorkerCount(),
        default="1",
        show_default=True,
        help="Processes. auto: one for each processor that this process may use.",
    ),
    click.option(
        "--worker-memory-limit",
        "memory_limit",
        type=WholeNumber(1),
        metavar="MIB",
        help="A worker whose resident memory is larger is replaced by a new one.",
    ),
    click.option(
        "--drain-seconds",
        type=Number(0),
        default=10.0,
        show_default=True,
        help="Time to finish requests under way when a worker ends; then it is killed.",
    ),
)


def with_workers(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of worker processes to a command.

    The command gets them as ``workers``, ``memory_limit`` (in MiB) and ``drain_seconds``.
    """
    return reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), command)
