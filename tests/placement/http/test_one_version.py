"""One answer is of one version: what is allocated and the generations beside it belong to the same commit.

A client that reads old allocations with a newer generation writes over what it has not seen, and the check of
the generation lets it pass.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from roost.ledger import Ledger
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.storage import Database
from support.placement_api import Api, allocation, uuid_of

HOST, FIRST, SECOND = uuid_of("host"), uuid_of("one"), uuid_of("two")


@pytest.fixture
def other_writer(api: Api) -> Iterator[Ledger]:
    """A second process's ledger on the same database."""
    database = Database(f"sqlite:///{api.path}")
    ledger = api.run(Ledger.open(database))
    yield ledger
    api.run(ledger.close())
    api.run(database.close())


def once(act: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    left = [act]

    async def act_once() -> None:
        while left:
            await left.pop()()

    return act_once


@pytest.mark.parametrize("moment", ["before the read", "after the read"])
@pytest.mark.parametrize(
    "path", [f"/resource_providers/{HOST}/allocations", f"/allocations/{FIRST}"], ids=["provider", "consumer"]
)
def test_allocations_are_shown_with_the_generations_of_their_commit(
    api: Api, other_writer: Ledger, monkeypatch: pytest.MonkeyPatch, path: str, moment: str
) -> None:
    api.provider("host", VCPU=8)
    api.put(f"/allocations/{FIRST}", allocation({HOST: {"VCPU": 1}}))
    before = api.get(path)
    read = api.database.read

    async def write_more() -> None:
        held = {HOST: {"VCPU": 2}}
        writes = [
            ConsumerWrite(consumer=consumer, allocations=held, project_id="project", user_id="user")
            for consumer in (FIRST, SECOND)
        ]
        await other_writer.execute(WriteAllocations(tuple(writes)))

    overtake = once(write_more)

    async def overtaken_read(work: Any, **how: bool) -> Any:
        if moment == "before the read":
            await overtake()
        found = await read(work, **how)
        await overtake()
        return found

    monkeypatch.setattr(api.database, "read", overtaken_read)
    during = api.get(path)
    after = api.get(path)

    assert before != after
    assert during in (before, after)
