"""Assignments of consumers: a sticky attribute that writes state, keep, hand on, and that never clashes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.model.assignment import AssignedCell, AssignedDevices, Assignment, digest_of_all
from roost.placement.commands.allocations import ConsumerWrite, DeleteAllocations, WriteAllocations
from roost.placement.commands.providers import UpdateProvider
from roost.placement.errors import AssignmentChanged, AssignmentRefused, BadRequest
from support.ledgers import findings_in, host, loaded, opened, run, whole

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Two hosts, one of them with a child. It is verified after the test."""
    path = tmp_path / "ledger.db"
    async with opened(path) as [ledger]:
        await run(
            ledger,
            *host("h1", VCPU=8),
            *host("h1-numa", "h1", MEMORY_MB=64),
            *host("h2", VCPU=8),
        )
        yield ledger
        assert whole(await ledger.current()) == loaded(ledger.database)
    assert findings_in(path) == []


def pinned(node: str, *cpus: int, reserved: tuple[int, ...] = ()) -> Assignment:
    return Assignment(node, (AssignedCell(0, 0, pinned=tuple(enumerate(cpus)), reserved=reserved),))


def devices(node: str, *addresses: str) -> Assignment:
    return Assignment(node, devices=(AssignedDevices("r", "pool", len(addresses), addresses),))


def write(consumer: str, *providers: str, amount: int = 1, **more: Any) -> ConsumerWrite:
    allocations = {each: {"MEMORY_MB" if each == "h1-numa" else "VCPU": amount} for each in providers}
    return ConsumerWrite(consumer=consumer, allocations=allocations, project_id="p", user_id="u", **more)


async def put(ledger: Ledger, *writes: ConsumerWrite) -> None:
    await ledger.execute(WriteAllocations(writes))


async def assigned(ledger: Ledger) -> dict[str, Assignment]:
    """The assignment of each consumer that has one; the same in the tables."""
    fleet = await ledger.current()
    found = {
        consumer: each
        for node in fleet.assigned.nodes()
        for consumer, each in fleet.assigned.on(node).items()
    }
    held = ledger.database.read_now(held_by_all)
    stored = {uuid: each.consumer.assignment for uuid, each in held.items() if each.consumer.assignment}
    assert stored == found
    return found


async def test_a_write_sets_keeps_replaces_and_takes_away(ledger: Ledger) -> None:
    await put(ledger, write("a", "h1", assignment=pinned("h1", 1, 2)))
    await put(ledger, write("a", "h1", amount=2))
    assert await assigned(ledger) == {"a": pinned("h1", 1, 2)}
    await put(ledger, write("a", "h1", assignment=pinned("h1", 2, 3)))
    assert await assigned(ledger) == {"a": pinned("h1", 2, 3)}
    await put(ledger, write("a", "h1", assignment=None))
    assert await assigned(ledger) == {}


async def test_it_is_kept_only_in_the_tree_of_its_node(ledger: Ledger) -> None:
    await put(ledger, write("a", "h1", assignment=pinned("h1", 1)))
    await put(ledger, write("a", "h1-numa", "h2"))
    assert await assigned(ledger) == {"a": pinned("h1", 1)}
    await put(ledger, write("a", "h2"))
    assert await assigned(ledger) == {}


async def test_it_is_gone_with_the_consumer(ledger: Ledger) -> None:
    await put(
        ledger, write("a", "h1", assignment=pinned("h1", 1)), write("b", "h1", assignment=pinned("h1", 2))
    )
    await ledger.execute(DeleteAllocations("a"))
    await put(ledger, write("b"))
    assert await assigned(ledger) == {}
    await put(ledger, write("a", "h1"))
    assert await assigned(ledger) == {}


@pytest.mark.parametrize(
    ("assignment", "text"),
    [
        (pinned("h1", 5, 2), "consumer a has host CPU 2"),
        (pinned("h1", 5, reserved=(3,)), "consumer a has host CPU 3"),
        (devices("h1", "0000:81:00.1", "0000:81:00.0"), "consumer a has PCI device 0000:81:00.0"),
    ],
)
async def test_no_cpu_and_no_device_is_assigned_twice(
    ledger: Ledger, assignment: Assignment, text: str
) -> None:
    first = Assignment("h1", pinned("h1", 1, 2, reserved=(3,)).cells, devices("h1", "0000:81:00.0").devices)
    await put(ledger, write("a", "h1", assignment=first))
    with pytest.raises(AssignmentRefused) as refused:
        await put(ledger, write("b", "h1", assignment=assignment))
    assert str(refused.value) == f"Unable to assign to consumer b on resource provider 'h1': {text}."
    assert await assigned(ledger) == {"a": first}
    elsewhere = Assignment("h2", assignment.cells, assignment.devices)
    await put(ledger, write("b", "h2", assignment=elsewhere))
    assert await assigned(ledger) == {"a": first, "b": elsewhere}


async def test_the_writes_of_one_request_are_judged_together(ledger: Ledger) -> None:
    with pytest.raises(AssignmentRefused):
        await put(ledger, *(write(name, "h1", assignment=pinned("h1", 1)) for name in "ab"))
    assert await assigned(ledger) == {}
    await put(ledger, write("a", "h1", assignment=pinned("h1", 1)))
    # One leaves the CPU in the request in which another one gets it.
    await put(ledger, write("b", "h1", assignment=pinned("h1", 1)), write("a", "h1", assignment=None))
    assert await assigned(ledger) == {"b": pinned("h1", 1)}


async def test_a_migration_takes_over_the_assignment_and_gives_it_back(ledger: Ledger) -> None:
    source, target = pinned("h1", 1, 2), pinned("h2", 1, 2)
    await put(ledger, write("instance", "h1", assignment=source))
    await put(ledger, write("migration", "h1"), write("instance", "h2", assignment=target))
    assert await assigned(ledger) == {"migration": source, "instance": target}
    with pytest.raises(AssignmentRefused):
        await put(ledger, write("other", "h1", assignment=source))
    # The move failed: the instance goes back to where it was.
    await put(ledger, write("instance", "h1"), write("migration"))
    assert await assigned(ledger) == {"instance": source}
    # The move succeeded: the source is free.
    await put(ledger, write("migration", "h1"), write("instance", "h2", assignment=target))
    await ledger.execute(DeleteAllocations("migration"))
    await put(ledger, write("other", "h1", assignment=source))
    assert await assigned(ledger) == {"other": source, "instance": target}


async def test_a_resize_on_the_host_has_both_until_it_is_confirmed(ledger: Ledger) -> None:
    await put(ledger, write("instance", "h1", assignment=pinned("h1", 1)))
    with pytest.raises(AssignmentRefused):
        bigger = write("instance", "h1", amount=2, assignment=pinned("h1", 1, 2))
        await put(ledger, write("migration", "h1"), bigger)
    bigger = write("instance", "h1", amount=2, assignment=pinned("h1", 2, 3))
    await put(ledger, write("migration", "h1"), bigger)
    assert await assigned(ledger) == {"migration": pinned("h1", 1), "instance": pinned("h1", 2, 3)}


async def test_an_assignment_is_handed_on_to_one_consumer_and_by_a_move_alone(ledger: Ledger) -> None:
    await put(ledger, write("a", "h1", assignment=pinned("h1", 1)))
    await put(ledger, write("b", "h1"), write("a", "h1"))
    assert await assigned(ledger) == {"a": pinned("h1", 1)}
    await put(ledger, write("c", "h1"), write("d", "h1"), write("a"))
    assert await assigned(ledger) == {"c": pinned("h1", 1)}


async def test_a_claim_says_beside_which_assignments_it_was_fitted(ledger: Ledger) -> None:
    beside = digest_of_all({})
    await put(ledger, write("a", "h1", assignment=pinned("h1", 1), beside=beside))
    with pytest.raises(AssignmentChanged, match="resource provider 'h1' have the digest") as changed:
        await put(ledger, write("b", "h1", assignment=pinned("h1", 2), beside=beside))
    present = digest_of_all({"a": pinned("h1", 1)})
    assert present in str(changed.value)
    assert beside in str(changed.value)
    await put(ledger, write("b", "h1", assignment=pinned("h1", 2), beside=present))
    await put(ledger, write("c", "h2", assignment=pinned("h2", 1), beside=beside))


@pytest.mark.parametrize(
    ("assignment", "text"),
    [
        (pinned("h3", 1), "Assignment on resource provider 'h3' that does not exist"),
        (pinned("h1-numa", 1), "resource provider 'h1-numa' that is not the root of a tree"),
        (pinned("h2", 1), "on resource provider 'h2', from whose tree it has no allocation"),
        (pinned("h1", 1, 2, 1), "Assignment of consumer a has host CPU 1 twice"),
        (pinned("h1", 1, reserved=(1,)), "Assignment of consumer a has host CPU 1 twice"),
        (devices("h1", "x", "x"), "Assignment of consumer a has PCI device x twice"),
    ],
)
async def test_an_assignment_that_makes_no_sense(ledger: Ledger, assignment: Assignment, text: str) -> None:
    with pytest.raises(BadRequest, match=text):
        await put(ledger, write("a", "h1", assignment=assignment))
    assert await assigned(ledger) == {}


async def test_a_tree_that_is_taken_apart(ledger: Ledger) -> None:
    """The consumer keeps what it has until its next write finds it in another tree."""
    await put(ledger, write("a", "h1-numa", assignment=pinned("h1", 1)))
    await ledger.execute(UpdateProvider("h1-numa", "name of h1-numa", "h2"))
    assert await assigned(ledger) == {"a": pinned("h1", 1)}
    await put(ledger, write("a", "h1-numa"))
    assert await assigned(ledger) == {}
