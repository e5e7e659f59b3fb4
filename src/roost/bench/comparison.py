"""How benchmarks measure, and Roost and OpenStack Placement (the peer) measured in turns.

The services take turns because the speed of a machine changes over minutes, with its temperature and with the
load of its other guests. Rounds of a few seconds, one service after the other, see the same speed. So the
ratio of two services is stable where their figures are not.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from roost.bench.fleets import FleetPlan
from roost.bench.load_generator import LoadPlan
from roost.bench.measurement import Figures, Measurement, run_load
from roost.bench.peer import find_peer
from roost.bench.progress import announce, announce_round
from roost.bench.services import Roost, Service, Upstream
from roost.bench.store import Store

Planner = Callable[[Service, int], LoadPlan]
"""Returns what a service is sent in a round. Rounds count from 0."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """How to measure.

    ``folder`` is the bench directory. Roost runs ``workers`` worker processes, the peer ``peer_processes``.
    The peer takes part if ``peer`` is set and the fleet has at most ``peer_providers`` providers. A case has
    ``rounds``, in each of which each service is measured for ``seconds``. An answer that takes longer than
    ``timeout`` seconds ends its case.
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
        """Return the part of it that a report shows."""
        shown: dict[str, object] = {
            "workers": self.workers,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "timeout": self.timeout,
        }
        return {**shown, "upstream": f"uwsgi, {self.peer_processes} processes"} if self.peer else shown


@contextmanager
def running_services(setting: Setting, store: Store, plan: FleetPlan) -> Iterator[list[Service]]:
    """Run Roost, and the peer if it takes part, each on a copy of the same fleet.

    Raises:
        BenchError: A service does not start, or the peer is not installed.
    """
    announce(f"preparing a fleet: {plan}")
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


def in_turns(entered: Sequence[Service], planner: Planner, rounds: int) -> list[Measurement]:
    """Measure the services in turns. One with an overdue answer is restarted and has no more rounds."""
    loads = [Measurement() for _ in entered]
    for number in range(rounds):
        for service, load in zip(entered, loads, strict=True):
            if load.overdue:
                continue
            result = run_load(planner(service, number))
            load.add(result)
            announce_round(
                number + 1, rounds, service.name, len(result.latencies) / 8 / max(result.seconds, 1e-9)
            )
            if load.overdue:
                service.restart()
    return loads


def speedup(ours: Figures, peer: Figures | None) -> float | None:
    """Return the peer's median latency divided by ours; None without a peer or if ours is a lower bound."""
    return None if peer is None or ours.at_least else peer.p50_ms / ours.p50_ms
