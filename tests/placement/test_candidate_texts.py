"""Candidates as JSON: the same as their values encoded, whatever was kept from before."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.fleet import Fleet, choices
from roost.fleet.candidates import CandidateSearch
from roost.model.allocation import Candidate
from roost.model.change import (
    AllocationsChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    TraitChanged,
    TraitsChanged,
)
from roost.model.inventory import Inventory
from roost.model.request import CandidateQuery, RequestGroup
from roost.placement.wire import candidate_texts, provider_texts
from roost.placement.wire.candidate_texts import describe_candidates as describe
from roost.placement.wire.provider_texts import ProviderTexts
from support.fleets import TRAITS, fleet_of, queries, worlds
from support.oracle import SHARING, Provider, World

WORLD: World = {"p": Provider(inventories={"VCPU": Inventory(2)})}
QUERY = CandidateQuery((RequestGroup({"VCPU": 1}),))
VERSIONS = (10, 12, 17, 27, 29, 34, 39)


def told(fleet: Fleet, query: CandidateQuery, texts: ProviderTexts, version: int) -> Any:
    search = CandidateSearch(fleet, query)
    described = describe(fleet, search.needs, search.first(2**62), texts, version)
    return msgspec.json.decode(described.document())


def expected_request(candidate: Candidate, version: int) -> dict[str, Any]:
    keyed = {uuid: {"resources": resources} for uuid, resources in candidate.allocations.items()}
    if version < 12:
        listed = [{"resource_provider": {"uuid": uuid}, **resources} for uuid, resources in keyed.items()]
        return {"allocations": listed}
    return {"allocations": keyed, **({"mappings": candidate.mappings} if version >= 34 else {})}


def expected_summary(fleet: Fleet, uuid: str, query: CandidateQuery, version: int) -> dict[str, Any]:
    row = fleet.row(uuid)
    resources = {}
    for name in fleet.inventoried_classes():
        stock = fleet.inventory_columns(name)
        if stock.slot(row) >= 0 and (version >= 27 or name in query.resources):
            slot = stock.slot(row)
            resources[name] = {"capacity": stock.capacity.item(slot), "used": stock.used.item(slot)}
    summary: dict[str, Any] = {"resources": resources}
    if version >= 17:
        summary["traits"] = sorted(fleet.traits_of(row), key=fleet.traits.__getitem__)
    if version >= 29:
        summary["parent_provider_uuid"] = fleet.facts(row).parent
        summary["root_provider_uuid"] = fleet.uuid(fleet.root.item(row))
    return summary


def check(fleet: Fleet, query: CandidateQuery, texts: ProviderTexts) -> None:
    candidates = list(CandidateSearch(fleet, query))
    for version in VERSIONS:
        document = told(fleet, query, texts, version)
        assert document["allocation_requests"] == [expected_request(each, version) for each in candidates]
        shown = {uuid for each in candidates for uuid in each.allocations}
        if version >= 29:
            roots = {fleet.root.item(fleet.row(uuid)) for uuid in shown}
            shown = {fleet.uuid(row) for root in roots for row in fleet.subtree(root)}
        assert document["provider_summaries"] == {
            uuid: expected_summary(fleet, uuid, query, version) for uuid in shown
        }


def change(data: st.DataObject, fleet: Fleet) -> None:
    """Something about a provider changes that summaries show."""
    uuid = data.draw(st.sampled_from(sorted(fleet.uuids())))
    row = fleet.row(uuid)
    what = data.draw(st.integers(0, 4))
    if what == 0:
        fleet.apply(TraitsChanged(uuid, fleet.traits_of(row), (data.draw(st.sampled_from(TRAITS)),)))
    elif what == 1:
        after = {"VCPU": Inventory(data.draw(st.integers(1, 9)))}
        fleet.apply(InventoryChanged(uuid, fleet.inventories(row), after))
    elif what == 2:
        fleet.apply(AllocationsChanged("c", None, None, {}, {uuid: {"VCPU": data.draw(st.integers(1, 3))}}))
    elif what == 3:
        new = f"new{len(fleet)}"
        fleet.apply(ProviderChanged(new, fleet.free_row(), None, ProviderFacts(new, uuid, 0)))
    else:
        below = {fleet.uuid(each) for each in fleet.subtree(row)}
        parents = [None, *sorted(set(fleet.uuids()) - below)]
        before = fleet.facts(row)
        after_facts = msgspec.structs.replace(before, parent=data.draw(st.sampled_from(parents)))
        fleet.apply(ProviderChanged(uuid, row, before, after_facts))


@pytest.fixture(params=["one by one", "in columns"])
def written(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How candidates are written: in columns those whose uuids are all of one length, here that of p0."""
    if request.param == "in columns":
        for module in (choices, candidate_texts):
            monkeypatch.setattr(module, "FEW", 0)
        for module in (candidate_texts, provider_texts):
            monkeypatch.setattr(module, "QUOTED", len('"p0"'))
    # Templates of another length of uuids.
    monkeypatch.setattr(candidate_texts, "_TEMPLATES", {})


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.data(), worlds(), st.lists(queries(), min_size=1, max_size=3))
def test_what_is_kept_is_told_only_while_it_is_true(
    written: None, data: st.DataObject, world: World, asked: list[CandidateQuery]
) -> None:
    fleet = fleet_of(world)
    for number, trait in enumerate((*TRAITS, SHARING)):
        fleet.apply(TraitChanged(trait, None, number))
    texts = ProviderTexts()
    for query in asked:
        check(fleet, query, texts)
        for _ in range(data.draw(st.integers(1, 3))):
            change(data, fleet)
        check(fleet, query, texts)


def test_of_another_fleet_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_texts, "MAX_ENTRIES", 0)
    check_two_fleets()
    monkeypatch.undo()
    check_two_fleets()


def check_two_fleets() -> None:
    texts = ProviderTexts()
    for total in (4, 8):
        fleet = fleet_of(WORLD)
        fleet.apply(InventoryChanged("p", fleet.inventories(0), {"VCPU": Inventory(total)}))
        [summary] = told(fleet, QUERY, texts, 39)["provider_summaries"].values()
        assert summary["resources"]["VCPU"]["capacity"] == total
