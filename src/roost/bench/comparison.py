"""The options of a measurement, and Roost and OpenStack Placement (the peer) measured in turns.

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
from roost.bench.measurement import MeasuredFigures, Measurement, run_load
from roost.bench.peer import find_peer
from roost.bench.progress import announce, announce_round
from roost.bench.services import BenchService, Roost, Upstream
from roost.bench.store import Store

Planner = Callable[[BenchService, int], LoadPlan]
"""Returns the load of a service in a round. Rounds count from 0."""


class ComparedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a measurement.

    ``folder``: the bench directory. ``workers``, ``peer_processes``: processes of Roost and of the peer. The
    peer takes part if ``peer`` is set and the fleet has at most ``peer_providers`` providers. A case has
    ``rounds``; in each of them each service is measured for ``seconds``. A response that takes longer than
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
        """Return the options that a report shows."""
        shown: dict[str, object] = {
            "workers": self.workers,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "timeout": self.timeout,
        }
        return {**shown, "upstream": f"uwsgi, {self.peer_processes} processes"} if self.peer else shown


@contextmanager
def running_services(setting: ComparedSetting, store: Store, plan: FleetPlan) -> Iterator[list[BenchService]]:
    """Run Roost, and the peer if it takes part, each on a copy of the same fleet.

    Raises:
        BenchError: A service does not start, or the peer is not installed.
    """
    announce(f"preparing a fleet: {plan}")
    with ExitStack() as stack:
        log = setting.folder / "roost.log"
        database = stack.enter_context(store.copy(plan, "roost"))
        entered: list[BenchService] = [stack.enter_context(Roost(log, database, setting.workers))]
        if setting.peer and plan.providers <= setting.peer_providers:
            peer = find_peer(setting.folder)
            database = stack.enter_context(store.copy(plan, "upstream"))
            upstream = Upstream(setting.folder / "upstream.log", database, peer, setting.peer_processes)
            entered.append(stack.enter_context(upstream))
        yield entered


def in_turns(entered: Sequence[BenchService], planner: Planner, rounds: int) -> list[Measurement]:
    """Measure the services in turns. After an overdue response a service is restarted and left out."""
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


def speedup(ours: MeasuredFigures, peer: MeasuredFigures | None) -> float | None:
    """Return the peer's median latency divided by ours; None without a peer or if ours is a lower bound."""
    return None if peer is None or ours.at_least else peer.p50_ms / ours.p50_ms
