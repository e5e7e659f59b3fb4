"""Decisions of the scheduler without the store: filter, weigh, pick, claim prepared, alternates."""

import random
import time
import uuid

import msgspec
import numpy as np

from roost.bench.fleets import flat_fleet
from roost.ledger import State
from roost.model.spec import Flavor, RequestSpec
from roost.scheduler import SchedulerOptions
from roost.scheduler.gateways.local import Decide
from roost.scheduler.plugins import filters, weighers
from roost.scheduler.query import candidate_query
from roost.scheduler.question import Question
from roost.scheduler.selection import Plugins

FLAVORS = [
    Flavor("small", 1, 2_048, 10),
    Flavor("medium", 2, 4_096, 20),
    Flavor("large", 4, 16_384, 40),
    Flavor("huge", 16, 65_536, 160),
]


class DecideResult(msgspec.Struct, frozen=True):
    """Milliseconds of single decisions, claims and alternates included, at one number of hosts."""

    hosts: int
    decisions: int
    p50_ms: float
    p99_ms: float
    decisions_per_second: float


def measure(hosts: int, decisions: int, num_alternates: int, seed: int) -> DecideResult:
    """Time single-instance decisions one by one on a fleet where every claim stays."""
    rng = np.random.default_rng(seed)
    fleet, table = flat_fleet(hosts, rng)
    options = SchedulerOptions()
    plugins = Plugins(filters(options.filters), weighers(options.weighers))
    draw = random.Random(seed)
    state = State(fleet, {}, 0.0)
    times = []
    for number in range(decisions):
        spec = RequestSpec(project_id="project", user_id="user", flavor=FLAVORS[number % len(FLAVORS)])
        question = Question(
            run="run",
            spec=spec,
            query=candidate_query(spec, table, options),
            instances=(str(uuid.UUID(int=draw.getrandbits(128))),),
            num_alternates=num_alternates,
            min_count=1,
            now=0.0,
            options=options,
        )
        command = Decide(question, table, plugins, draw.randrange)
        state.name(command.consumers())
        started = time.perf_counter()
        decided = command.run(state)
        times.append((time.perf_counter() - started) * 1000)
        if decided.outcome.refusal is not None:
            raise RuntimeError(f"decision {number} was refused: {decided.outcome.refusal}")
    median, worst = np.percentile(times, [50, 99])
    return DecideResult(hosts, decisions, float(median), float(worst), len(times) / (sum(times) / 1000))
