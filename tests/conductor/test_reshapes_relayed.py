"""Reshapes that an endpoint relays to a placement service, in its process or over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from roost.agent.protocol.errors import AccessRefused
from roost.agent.protocol.types import MovedClaim, SetInventories
from roost.conductor.agent_endpoint.relay import ProviderRelay
from roost.model.assignment import AssignedCell, Assignment
from roost.model.inventory import Inventory
from roost.placement.client.http import HttpPlacement
from roost.placement.commands.allocations import ConsumerWrite
from roost.web.auth.credentials import FixedCredentials
from support.placement_api import Api, uuid_of

ONE, OTHERS = uuid_of("one"), uuid_of("others")
GPUS = {"VGPU": Inventory(4)}
ASSIGNED = Assignment(uuid_of("host"), (AssignedCell(0, 0, shared=1),))


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    api = Api(tmp_path)
    yield api
    api.close()


@pytest.fixture(params=["in process", "over HTTP"])
def relay(request: pytest.FixtureRequest, api: Api) -> Iterator[ProviderRelay]:
    if request.param == "in process":
        yield ProviderRelay(api.service)
        return
    transport = httpx.AsyncClient(transport=httpx.ASGITransport(app=api.app))
    client = HttpPlacement(FixedCredentials("http://placement", "admin"), client=transport)
    yield ProviderRelay(client)
    api.run(client.close())


@pytest.fixture
def tree(api: Api) -> tuple[str, str]:
    """A host with virtual GPUs of which two consumers hold some, and a card without any."""
    root = api.provider("host", VCPU=8, VGPU=4)
    card = uuid_of("card")
    api.run(api.service.ensure_provider(card, "card", root))
    for consumer, kind, assignment in ((ONE, "INSTANCE", ASSIGNED), (OTHERS, "VOLUME", None)):
        write = ConsumerWrite(
            consumer=consumer,
            allocations={root: {"VCPU": 1, "VGPU": 2}},
            project_id="p",
            user_id="u",
            consumer_type=kind,
            generation=None,
            assignment=assignment,
        )
        api.run(api.service.write_allocations([write]))
    return root, card


def changed(api: Api, relay: ProviderRelay, root: str, card: str) -> list[SetInventories]:
    at = {each.uuid: each.generation for each in api.run(relay.read(root))}
    return [SetInventories(root, {"VCPU": Inventory(8)}, at[root]), SetInventories(card, GPUS, at[card])]


def test_inventories_and_claims_change_at_once(api: Api, relay: ProviderRelay, tree: tuple[str, str]) -> None:
    root, card = tree
    claims = api.run(relay.claims(root))
    assert {uuid: each.consumer_type for uuid, each in claims.items()} == {ONE: "INSTANCE", OTHERS: "VOLUME"}
    moved = {uuid: MovedClaim({root: {"VCPU": 1}, card: {"VGPU": 2}}, 1) for uuid in claims}
    inventories = changed(api, relay, root, card)
    assert api.run(relay.reshape(root, inventories, moved)) is None
    assert api.run(api.service.inventories(card)) == GPUS
    for consumer, kind, assignment in ((ONE, "INSTANCE", ASSIGNED), (OTHERS, "VOLUME", None)):
        held = api.run(api.service.allocations_of(consumer))
        assert held is not None
        assert held.allocations == {root: {"VCPU": 1}, card: {"VGPU": 2}}
        kept = (held.consumer.generation, held.consumer.consumer_type, held.consumer.assignment)
        assert kept == (2, kind, assignment)
    late = api.run(relay.reshape(root, inventories, moved))
    assert late is not None and late.conflict


def test_reshape_that_placement_refuses_changes_nothing(
    api: Api, relay: ProviderRelay, tree: tuple[str, str]
) -> None:
    root, card = tree
    inventories = changed(api, relay, root, card)
    # The other consumer would be left with what is gone.
    moved = {ONE: MovedClaim({root: {"VCPU": 1}, card: {"VGPU": 2}}, 1)}
    refusal = api.run(relay.reshape(root, inventories, moved))
    assert refusal is not None and "VGPU" in refusal.text and not refusal.conflict
    assert api.run(relay.claims(root))[ONE].allocations == {root: {"VCPU": 1, "VGPU": 2}}
    assert api.run(api.service.inventories(card)) == {}
    gone = {uuid_of("gone"): MovedClaim({card: {"VGPU": 2}}, 1)}
    refusal = api.run(relay.reshape(root, inventories, gone))
    assert refusal is not None and refusal.conflict


def test_providers_of_another_tree_are_out_of_reach(
    api: Api, relay: ProviderRelay, tree: tuple[str, str]
) -> None:
    other = api.provider("other", VCPU=1)
    with pytest.raises(AccessRefused, match="not in the tree"):
        api.run(relay.reshape(tree[0], [SetInventories(other, {}, 1)], {}))
