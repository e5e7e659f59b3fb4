"""A database with a history: claims that come and go on the hosts of a fleet for a day.

The ledger would take hours to make the commits of a day. They are written as rows here, with the state of
the tables that they lead to.
"""

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import sqlalchemy as sa

from roost.bench.fleets import SEED, FleetPlan, uuids
from roost.ledger.feed import encode_changes
from roost.ledger.tables import allocations, commits, consumers, resource_classes, resource_providers
from roost.model.allocation import Consumer
from roost.model.change import AllocationsChanged, Change, GenerationChanged
from roost.storage import Database

RATE: Final = 25.0
"""Commits a second."""

NEWEST_AT: Final = 1_790_000_000.0
"""The time of the newest commit, in seconds since the epoch."""

_ROWS_AT_ONCE: Final = 20_000
_FIRST_CONSUMER: Final = 2**40
_SIZES: Final = (1, 2, 4, 8)
"""VCPUs of claims."""

_Step = tuple[int, float, list[Change]]


def add_history(
    database: Database, plan: FleetPlan, count: int, progress: Callable[[int, int], None] = lambda *_: None
) -> None:
    """Write a history of commits into a database that has the fleet of a plan and one commit.

    Each commit is a claim on a random host, or frees the oldest claim: there are five for each host.
    """
    history = _History(plan, count)
    with database.engine.begin() as connection:
        steps = history.steps()
        done = 0
        while some := list(itertools.islice(steps, _ROWS_AT_ONCE)):
            rows = [
                {"seq": seq, "writer": f"bench-{seq}", "committed_at": at, "changes": encode_changes(changes)}
                for seq, at, changes in some
            ]
            connection.execute(sa.insert(commits), rows)
            done += len(some)
            progress(done, count)
        ids = sa.select(resource_classes.c.name, resource_classes.c.id)
        names = dict(connection.execute(ids).tuples().all())
        raised = sa.update(resource_providers).where(resource_providers.c.uuid == sa.bindparam("provider"))
        connection.execute(
            raised.values(generation=sa.bindparam("raised")),
            [{"provider": uuid, "raised": number} for uuid, number in history.generations.items()],
        )
        ids = sa.select(resource_providers.c.uuid, resource_providers.c.id)
        rows_of = dict(connection.execute(ids).tuples().all())
        held = [(number, *each) for number, each in enumerate(history.held, _FIRST_CONSUMER)]
        connection.execute(
            sa.insert(consumers),
            [
                {
                    "id": number,
                    "uuid": consumer.uuid,
                    "project_id": consumer.project_id,
                    "user_id": consumer.user_id,
                    "consumer_type": consumer.consumer_type,
                    "generation": consumer.generation,
                    "changed_at": NEWEST_AT,
                }
                for number, consumer, _, _ in held
            ],
        )
        connection.execute(
            sa.insert(allocations),
            [
                {
                    "consumer_id": number,
                    "provider_id": rows_of[provider],
                    "resource_class_id": names[name],
                    "used": amount,
                }
                for number, _, provider, size in held
                for name, amount in _resources(size).items()
            ],
        )


class _History:
    """The commits of a history, made one after another. Afterwards the state that they lead to."""

    def __init__(self, plan: FleetPlan, count: int) -> None:
        self._roots = plan.roots()
        self._count = count
        self._held: OrderedDict[str, tuple[Consumer, str, int]] = OrderedDict()
        self.generations: dict[str, int] = {}

    @property
    def held(self) -> list[tuple[Consumer, str, int]]:
        """Consumers with their provider and VCPUs."""
        return list(self._held.values())

    def steps(self) -> Iterator[_Step]:
        """Yield the commits."""
        rng = np.random.default_rng(SEED + 2)
        began = NEWEST_AT - self._count / RATE
        project, user = uuids(rng, 2)
        most = 5 * len(self._roots)
        for first in range(0, self._count, _ROWS_AT_ONCE):
            size = min(_ROWS_AT_ONCE, self._count - first)
            hosts, sizes = rng.integers(0, len(self._roots), size), rng.choice(_SIZES, size)
            for number, uuid in enumerate(uuids(rng, size)):
                seq = first + number + 2
                at = began + (first + number + 1) / RATE
                if len(self._held) < most or number % 2:
                    consumer = Consumer(uuid, project, user, 1, "INSTANCE")
                    changes = self._claim(consumer, self._roots[hosts[number]], int(sizes[number]))
                else:
                    changes = self._free()
                yield seq, at, changes

    def _claim(self, consumer: Consumer, host: str, size: int) -> list[Change]:
        self._held[consumer.uuid] = consumer, host, size
        before = self.generations.get(host, 0)
        self.generations[host] = before + 1
        return [
            AllocationsChanged(consumer.uuid, None, consumer, {}, {host: _resources(size)}),
            GenerationChanged(host, before, before + 1),
        ]

    def _free(self) -> list[Change]:
        consumer, host, size = self._held.popitem(last=False)[1]
        return [AllocationsChanged(consumer.uuid, consumer, None, {host: _resources(size)}, {})]


def _resources(size: int) -> dict[str, int]:
    return {"VCPU": size, "MEMORY_MB": 2_048 * size, "DISK_GB": 10 * size}
