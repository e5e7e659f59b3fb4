"""The same work for Roost and for upstream, in turns.

Why in turns: a machine's speed changes over minutes, with its temperature and with its other guests. Rounds
of a few seconds, one service after the other, see the same weather, so the ratio holds where the figures
do not.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from roost.bench.client import Plan
from roost.bench.fleets import FleetPlan
from roost.bench.load import Figures, Load, send
from roost.bench.peer import find_peer
from roost.bench.services import Roost, Service, Upstream
from roost.bench.store import Store

Planner = Callable[[Service, int], Plan]
"""What a service is sent in the round of a number, from 0."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure.

    ``folder``: the bench directory. ``workers``: of Roost; ``peer_processes``: of upstream, which takes part
    if ``peer`` and the fleet has at most ``peer_providers``. Each of ``rounds`` takes ``seconds`` for each
    service; an answer that takes ``timeout`` seconds is the last one of its case.
    """

    folder: Path
    workers: int = 1
    peer: bool = False
    peer_processes: int = 2
    peer_providers: int = 12_000
    rounds: int = 2
    seconds: float = 3.0
    timeout: float = 20.0

    def settings(self) -> dict[str, object]:
        """What a report says of it."""
        told: dict[str, object] = {
            "workers": self.workers,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "timeout": self.timeout,
        }
        return {**told, "upstream": f"uwsgi, {self.peer_processes} processes"} if self.peer else told


@contextmanager
def services(setting: Setting, store: Store, plan: FleetPlan) -> Iterator[list[Service]]:
    """Roost, and upstream if it takes part, each running on a copy of the same fleet.

    Raises `BenchError`.
    """
    tell(f"making a fleet ready: {plan}")
    with ExitStack() as stack:
        log = setting.folder / "roost.log"
        database = stack.enter_context(store.copy(plan, "roost"))
        entered: list[Service] = [stack.enter_context(Roost(log, database, setting.workers))]
        if setting.peer and plan.providers <= setting.peer_providers:
            peer = find_peer(setting.folder)
            database = stack.enter_context(store.copy(plan, "upstream"))
            upstream = Upstream(setting.folder / "upstream.log", database, peer, setting.peer_processes)
            entered.append(stack.enter_context(upstream))
        yield entered


def in_turns(entered: Sequence[Service], planner: Planner, rounds: int) -> list[Load]:
    """The load of each service over all rounds. One whose answer was overdue is restarted, and is done."""
    loads = [Load() for _ in entered]
    for number in range(rounds):
        for service, load in zip(entered, loads, strict=True):
            if load.overdue:
                continue
            load.add(send(planner(service, number)))
            if load.overdue:
                service.restart()
    return loads


def tell(line: str) -> None:
    """Say on standard error what is under way: measuring takes minutes."""
    print(f"roost: {line}", file=sys.stderr, flush=True)


def times_faster(ours: Figures, peer: Figures | None) -> float | None:
    """How many of our median answers fit into one of the peer's; None if there is no telling."""
    return None if peer is None or ours.at_least else peer.p50_ms / ours.p50_ms
