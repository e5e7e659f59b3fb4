"""The usages that a replica keeps are those of the tables, also of one that was loaded anew."""

import asyncio
import contextlib
import random
from typing import Any

import sqlalchemy as sa

from roost.fleet import Fleet
from roost.fleet.owner_usages import Usage
from roost.ledger import Ledger
from roost.ledger.load import load
from roost.ledger.tables import allocations, consumers, resource_classes
from roost.placement.commands.allocations import ConsumerWrite, DeleteAllocations, WriteAllocations
from roost.placement.errors import NotFound
from support.databases import Place
from support.ledgers import claim, host, opened, run

PROVIDERS = [f"provider {number}" for number in range(3)]
PROJECTS, USERS = ("p1", "p2", "p3"), ("u1", "u2")


def of_tables(connection: sa.Connection, project: str, user: str | None) -> list[Usage]:
    """The usages as a statement adds them up."""
    owned = consumers.c.project_id == project
    if user is not None:
        owned &= consumers.c.user_id == user
    numbers = sa.select(consumers.c.consumer_type, sa.func.count()).where(owned).group_by(sa.text("1"))
    used = (
        sa.select(consumers.c.consumer_type, resource_classes.c.name, sa.func.sum(allocations.c.used))
        .join_from(consumers, allocations, allocations.c.consumer_id == consumers.c.id)
        .join(resource_classes, resource_classes.c.id == allocations.c.resource_class_id)
        .where(owned)
        .group_by(sa.text("1, 2"))
    )
    sums: dict[str, dict[str, int]] = {}
    for kind, name, amount in connection.execute(used):
        sums.setdefault(kind, {})[name] = int(amount)
    counts = sorted(tuple(row) for row in connection.execute(numbers))
    return [Usage(kind, number, sums.get(kind, {})) for kind, number in counts]


async def check(ledger: Ledger, fleet: Fleet) -> None:
    for project in PROJECTS:
        for user in (None, *USERS):
            found = await ledger.database.read(lambda connection: of_tables(connection, project, user))  # noqa: B023
            assert fleet.owner_usages.usages(project, user) == found


def command(draw: random.Random) -> Any:
    consumer = f"consumer {draw.randrange(8)}"
    if draw.random() < 0.3:
        return DeleteAllocations(consumer)
    used = {name: draw.randint(1, 3) for name in draw.sample(("VCPU", "MEMORY_MB", "DISK_GB"), 2)}
    kind = draw.choice((None, "INSTANCE", "MIGRATION"))
    write = ConsumerWrite(
        consumer=consumer,
        allocations=dict.fromkeys(draw.sample(PROVIDERS, draw.randint(1, 2)), used),
        project_id=draw.choice(PROJECTS),
        user_id=draw.choice(USERS),
        consumer_type=kind,
    )
    return WriteAllocations((write,))


def test_usages_are_those_of_the_tables_in_replicas_that_follow_and_that_are_loaded(place: Place) -> None:
    draw = random.Random(26)

    async def use() -> None:
        async with opened(place, 2) as (ledger, other):
            for uuid in PROVIDERS:
                await run(ledger, *host(uuid, VCPU=1000, MEMORY_MB=1000, DISK_GB=1000))
            for number in range(60):
                with contextlib.suppress(NotFound):
                    await (ledger, other)[number % 2].execute(command(draw))
                if number % 10 == 9:
                    await check(ledger, await ledger.current())
                    await check(ledger, await other.current())
            # A replica whose position is trimmed away is loaded anew.
            for number in range(20):
                await run(ledger, claim(f"new {number}", PROVIDERS[0], VCPU=1))
            await ledger.trim(1, 2**40)
            await check(ledger, await other.current())
            await check(ledger, ledger.database.read_now(load))

    asyncio.run(use())
