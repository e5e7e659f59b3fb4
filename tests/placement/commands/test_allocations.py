"""Claims and their like, run together on one ledger."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.ledger.state import Moment
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import (
    ConsumerWrite,
    DeleteAllocations,
    FreeConsumers,
    WriteAllocations,
)
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider
from roost.placement.errors import CannotAllocate, ConcurrentUpdate, NotFound, PlacementError
from support.placement_api import Api, uuid_of

A, B = uuid_of("a"), uuid_of("b")


@pytest.fixture
def hosts(api: Api) -> Api:
    """Two providers with 8 VCPU each."""
    for uuid in (A, B):
        api.execute(CreateProvider(uuid, uuid))
        api.execute(SetInventories(uuid, {"VCPU": Inventory(8)}))
    return api


def write(consumer: str, held: dict[str, int], **more: object) -> ConsumerWrite:
    """A write of VCPU on providers."""
    allocations = {provider: {"VCPU": amount} for provider, amount in held.items()}
    return ConsumerWrite(consumer=consumer, allocations=allocations, project_id="p", user_id="u", **more)


def together(api: Api, *commands: object) -> list[object]:
    """Run commands at the same time; their results or refusals."""

    async def run() -> list[object]:
        return await asyncio.gather(*map(api.ledger.execute, commands), return_exceptions=True)

    return api.run(run())


def used(api: Api, provider: str) -> int:
    fleet = api.run(api.ledger.current())
    return fleet.inventory_columns("VCPU").used_by(fleet.row(provider))


def test_claims_that_go_together_never_take_more_than_there_is(hosts: Api) -> None:
    outcomes = together(hosts, *(WriteAllocations((write(str(n), {A: 3}),)) for n in range(5)))
    assert [type(outcome) for outcome in outcomes] == [Moment] * 2 + [CannotAllocate] * 3
    assert used(hosts, A) == 6


def test_a_claim_in_the_same_commit_sees_what_another_freed(hosts: Api) -> None:
    hosts.execute(WriteAllocations((write("old", {A: 8}),)))
    freed, claimed = together(hosts, FreeConsumers(("old",)), WriteAllocations((write("new", {A: 8}),)))
    assert freed is None and isinstance(claimed, Moment)
    assert used(hosts, A) == 8


def test_of_two_claims_at_one_generation_one_wins(hosts: Api) -> None:
    outcomes = together(hosts, *(WriteAllocations((write("c", {A: 1}, generation=None),)) for _ in range(2)))
    assert [type(outcome) for outcome in outcomes] == [Moment, ConcurrentUpdate]


def test_freeing_passes_over_who_holds_nothing_and_deleting_does_not(hosts: Api) -> None:
    hosts.execute(WriteAllocations((write("c", {A: 1, B: 2}),)))
    hosts.execute(FreeConsumers(("none", "c", "c")))
    assert (used(hosts, A), used(hosts, B)) == (0, 0)
    with pytest.raises(NotFound):
        hosts.execute(DeleteAllocations("c"))


def test_a_consumer_keeps_its_type_until_another_is_named(hosts: Api) -> None:
    def consumer_type() -> str:
        held = hosts.run(hosts.service.allocations_of("c"))
        assert held is not None
        return held.consumer.consumer_type

    for named, kept in ((None, "unknown"), ("INSTANCE", "INSTANCE"), (None, "INSTANCE")):
        hosts.execute(WriteAllocations((write("c", {A: 1}, consumer_type=named),)))
        assert consumer_type() == kept


Claims = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from("wxyz"),
            st.dictionaries(st.sampled_from([A, B]), st.integers(1, 9), max_size=2),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda pair: pair[0],
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=Claims)
def test_fleet_and_tables_agree_and_nothing_is_oversubscribed(
    hosts: Api, batch: list[list[tuple[str, dict[str, int]]]]
) -> None:
    commands = [WriteAllocations(tuple(write(*pair) for pair in claim)) for claim in batch]
    for outcome in together(hosts, *commands):
        assert isinstance(outcome, Moment | PlacementError)
    held = [hosts.run(hosts.service.allocations_of(consumer)) for consumer in "wxyz"]
    for provider in (A, B):
        in_tables = sum(each.allocations.get(provider, {}).get("VCPU", 0) for each in held if each)
        assert used(hosts, provider) == in_tables <= 8
    hosts.execute(FreeConsumers(tuple("wxyz")))
