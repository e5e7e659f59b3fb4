"""What the in-process service and the HTTP client both promise, and that both promise the same."""

from collections.abc import Iterator

import httpx
import pytest

from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup, all_of
from roost.placement.client import HttpPlacement
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.commands.reshape import NewInventories
from roost.placement.errors import (
    BadRequest,
    CannotAllocate,
    ConcurrentUpdate,
    DuplicateName,
    Forbidden,
    HasChildren,
    InventoryInUse,
    NotFound,
    ProviderInUse,
    UnknownProvider,
    error_for,
)
from roost.placement.interface import AllocationRequest, InventoryUsage, Placement, Provider, ProviderSummary
from roost.web.auth.credentials import FixedCredentials
from support.placement_api import Api, uuid_of

A, B = uuid_of("a"), uuid_of("b")
C, D = uuid_of("c"), uuid_of("d")


@pytest.fixture
def client(api: Api) -> Iterator[HttpPlacement]:
    transport = httpx.ASGITransport(app=api.app)
    client = HttpPlacement(
        FixedCredentials("http://placement", "admin"), client=httpx.AsyncClient(transport=transport)
    )
    yield client
    api.run(client.close())


@pytest.fixture(params=["in process", "over HTTP"])
def placement(request: pytest.FixtureRequest, api: Api, client: HttpPlacement) -> Placement:
    return api.service if request.param == "in process" else client


def write(consumer: str, held: dict[str, dict[str, int]], **more: object) -> ConsumerWrite:
    return ConsumerWrite(consumer=consumer, allocations=held, project_id="p", user_id="u", **more)


@pytest.fixture
def host(api: Api) -> str:
    return api.provider("a", VCPU=8)


def test_a_provider_is_renamed_and_moved(api: Api, placement: Placement) -> None:
    for uuid, name in ((A, "a"), (B, "b"), (C, "c")):
        api.run(placement.ensure_provider(uuid, name))
    api.run(placement.update_provider(B, "b", A))
    api.run(placement.update_provider(C, "new", B))
    assert [api.run(placement.provider(each)) for each in (B, C)] == [
        Provider(B, "b", 0, A, A),
        Provider(C, "new", 0, B, A),
    ]
    api.run(placement.update_provider(B, "b", None))
    assert api.run(placement.provider(C)) == Provider(C, "new", 0, B, B)
    with pytest.raises(BadRequest, match="loop"):
        api.run(placement.update_provider(B, "b", C))
    with pytest.raises(DuplicateName):
        api.run(placement.update_provider(B, "a", None))
    with pytest.raises(NotFound):
        api.run(placement.update_provider(D, "d", None))


def test_a_provider_is_ensured_once(api: Api, placement: Placement) -> None:
    root = api.run(placement.ensure_provider(A, "a"))
    assert root == Provider(A, "a", 0, None, A)
    child = api.run(placement.ensure_provider(B, "b", A))
    assert child == Provider(B, "b", 0, A, A)
    assert api.run(placement.ensure_provider(A, "renamed")) == root
    assert sorted(api.run(placement.tree(B)), key=lambda each: each.name) == [root, child]


def test_ensuring_a_provider_is_refused(api: Api, placement: Placement, host: str) -> None:
    with pytest.raises(DuplicateName):
        api.run(placement.ensure_provider(B, "a"))
    with pytest.raises(BadRequest):
        api.run(placement.ensure_provider(B, "b", uuid_of("none")))


def test_an_unknown_provider(api: Api, placement: Placement) -> None:
    assert api.run(placement.provider(A)) is None
    assert api.run(placement.tree(A)) == []
    for question in (
        placement.inventories,
        placement.traits,
        placement.aggregates,
        placement.delete_provider,
    ):
        with pytest.raises(NotFound):
            api.run(question(A))


def test_what_is_set_is_there(api: Api, placement: Placement, host: str) -> None:
    api.run(placement.ensure_resource_class("CUSTOM_GPU"))
    api.run(placement.ensure_resource_class("CUSTOM_GPU"))
    inventories = {"VCPU": Inventory(4, reserved=1, allocation_ratio=2.0), "CUSTOM_GPU": Inventory(2)}
    assert api.run(placement.set_inventories(A, inventories)) == 2
    assert api.run(placement.inventories(A)) == inventories
    assert api.run(placement.set_traits(A, ["CUSTOM_NEW", "HW_CPU_X86_AVX"], generation=2)) == 3
    assert api.run(placement.traits(A)) == {"CUSTOM_NEW", "HW_CPU_X86_AVX"}
    assert api.run(placement.set_aggregates(A, [B])) == 4
    assert api.run(placement.aggregates(A)) == {B}
    assert api.run(placement.providers_in_aggregate(B)) == {A}
    assert api.run(placement.providers_in_aggregate(A)) == set()


def test_setting_is_refused(api: Api, placement: Placement, host: str) -> None:
    with pytest.raises(ConcurrentUpdate):
        api.run(placement.set_inventories(A, {}, generation=0))
    with pytest.raises(ConcurrentUpdate):
        api.run(placement.set_traits(A, [], generation=0))
    with pytest.raises(ConcurrentUpdate):
        api.run(placement.set_aggregates(A, [B], generation=0))
    with pytest.raises(BadRequest):
        api.run(placement.set_traits(A, ["NONE"]))
    with pytest.raises(BadRequest):
        api.run(placement.set_inventories(A, {"CUSTOM_NONE": Inventory(1)}))
    with pytest.raises(BadRequest):
        api.run(placement.ensure_resource_class("NONE"))
    with pytest.raises(NotFound):
        api.run(placement.set_inventories(B, {}))


def test_allocations_come_and_go(api: Api, placement: Placement, host: str) -> None:
    assert api.run(placement.allocations_of(C)) is None
    api.run(
        placement.write_allocations(
            [
                write(C, {A: {"VCPU": 2}}, consumer_type="INSTANCE"),
                write(D, {A: {"VCPU": 1}}, consumer_type="X"),
            ]
        )
    )
    held = api.run(placement.allocations_of(C))
    assert held is not None
    assert held.allocations == {A: {"VCPU": 2}}
    assert (held.consumer.generation, held.consumer.consumer_type) == (1, "INSTANCE")
    found = api.run(placement.holdings([C, uuid_of("none"), D]))
    assert found[C] == held
    assert {uuid: each.allocations for uuid, each in found.items()} == {
        C: {A: {"VCPU": 2}},
        D: {A: {"VCPU": 1}},
    }
    assert api.run(placement.holdings([])) == {}
    api.run(placement.write_allocations([write(C, {A: {"VCPU": 3}})]))
    again = api.run(placement.allocations_of(C))
    assert again is not None
    assert (again.consumer.generation, again.consumer.consumer_type) == (2, "INSTANCE")
    api.run(placement.delete_allocations([C, uuid_of("none"), D, C]))
    assert api.run(placement.allocations_of(C)) is None
    assert api.run(placement.allocations_of(D)) is None


def test_writing_allocations_is_refused(api: Api, placement: Placement, host: str) -> None:
    with pytest.raises(CannotAllocate):
        api.run(placement.write_allocations([write(C, {A: {"VCPU": 1}}), write(D, {A: {"VCPU": 8}})]))
    with pytest.raises(ConcurrentUpdate):
        api.run(placement.write_allocations([write(C, {A: {"VCPU": 1}}, generation=4)]))
    with pytest.raises(BadRequest):
        api.run(placement.write_allocations([write(C, {B: {"VCPU": 1}})]))
    assert api.run(placement.allocations_of(C)) is None
    api.run(placement.write_allocations([]))


@pytest.mark.parametrize("generation", [None, 3])
def test_a_reshape_moves_inventories_and_allocations(
    api: Api, placement: Placement, generation: int | None
) -> None:
    api.put("/resource_classes/CUSTOM_GPU")
    api.provider("a", VCPU=8, CUSTOM_GPU=2)
    api.provider("b", parent="a")
    api.claim(C, A, CUSTOM_GPU=1)
    inventories = [
        NewInventories(A, {"VCPU": Inventory(8)}, generation),
        NewInventories(B, {"CUSTOM_GPU": Inventory(2)}),
    ]
    with pytest.raises(InventoryInUse):
        api.run(placement.reshape(inventories, []))
    with pytest.raises(CannotAllocate):
        api.run(placement.reshape(inventories, [write(C, {B: {"CUSTOM_GPU": 3}})]))
    api.run(placement.reshape(inventories, [write(C, {B: {"CUSTOM_GPU": 1}})]))
    held = api.run(placement.allocations_of(C))
    assert held is not None
    assert held.allocations == {B: {"CUSTOM_GPU": 1}}
    assert list(api.run(placement.inventories(A))) == ["VCPU"]
    with pytest.raises(UnknownProvider):
        api.run(placement.reshape([NewInventories(D, {}, 0)], []))


def test_what_is_in_use_stays(api: Api, placement: Placement, host: str) -> None:
    api.provider("b", parent="a")
    with pytest.raises(HasChildren):
        api.run(placement.delete_provider(A))
    api.run(placement.delete_provider(B))
    api.run(placement.write_allocations([write(C, {A: {"VCPU": 1}})]))
    with pytest.raises(InventoryInUse):
        api.run(placement.set_inventories(A, {}))
    with pytest.raises(ProviderInUse):
        api.run(placement.delete_provider(A))


def test_the_client_does_not_repeat_a_write_at_a_generation_that_was_named(
    api: Api, placement: Placement, client: HttpPlacement, host: str
) -> None:
    sent: list[str] = []

    async def note(request: httpx.Request) -> None:
        if request.method == "POST":
            sent.append(request.url.path)

    noting = httpx.AsyncClient(transport=httpx.ASGITransport(app=api.app), event_hooks={"request": [note]})
    other = HttpPlacement(FixedCredentials("http://placement", "admin"), client=noting)
    api.run(placement.write_allocations([write(C, {A: {"VCPU": 1}})]))
    outdated = write(C, {A: {"VCPU": 2}}, generation=None)
    unchecked = write(D, {A: {"VCPU": 1}})
    with pytest.raises(ConcurrentUpdate):
        api.run(other.write_allocations([unchecked, outdated]))
    assert sent == ["/allocations"]
    with pytest.raises(ConcurrentUpdate):
        api.run(other.reshape([NewInventories(A, {"VCPU": Inventory(8)}, 0)], [unchecked]))
    assert sent == ["/allocations", "/reshaper"]
    api.run(other.close())


def test_the_client_asks_for_candidates(api: Api, client: HttpPlacement, host: str) -> None:
    api.put("/traits/CUSTOM_X")
    plain = RequestGroup({"VCPU": 1}, forbidden=frozenset({"CUSTOM_X"}), in_tree=A)
    other = RequestGroup(
        {"VCPU": 2},
        "_1",
        required=(frozenset({"HW_CPU_X86_AVX", "CUSTOM_X"}), *all_of("HW_NUMA_ROOT")),
        member_of=(frozenset({B}),),
        forbidden_aggregates=frozenset({C, D}),
    )
    query = CandidateQuery((plain,), root_forbidden=frozenset({"CUSTOM_X"}))
    requests, summaries = api.run(client.candidates(query, 5))
    assert requests == [AllocationRequest.of({A: {"VCPU": 1}}, {"": [A]})]
    assert summaries == {A: ProviderSummary.of({"VCPU": InventoryUsage(8, 0)}, (), None, A)}
    nothing = CandidateQuery((plain, other), isolate=True, same_subtree=(frozenset({"_1"}),))
    assert api.run(client.candidates(nothing)) == ([], {})
    with pytest.raises(BadRequest):
        api.run(client.candidates(CandidateQuery((RequestGroup({"CUSTOM_NONE": 1}),))))


def test_the_client_says_what_the_service_refused_with(api: Api) -> None:
    transport = httpx.ASGITransport(app=api.app)
    client = HttpPlacement(
        FixedCredentials("http://placement/", "user"), client=httpx.AsyncClient(transport=transport)
    )

    async def ask() -> None:
        async with client:
            await client.provider(A)

    with pytest.raises(Forbidden, match="Policy does not allow"):
        api.run(ask())


def test_an_error_is_known_by_its_code_before_its_status() -> None:
    assert type(error_for(409, "placement.concurrent_update", "")) is ConcurrentUpdate
    assert type(error_for(404, "placement.undefined_code", "")) is NotFound
    assert type(error_for(400, None, "")) is BadRequest
    assert str(error_for(502, None, "bad gateway")) == "bad gateway"
