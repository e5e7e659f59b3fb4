"""Offers from an answer of GET /allocation_candidates."""

from roost.model.allocation import Allocations
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.interface import AllocationRequest, InventoryUsage, ProviderSummary
from roost.scheduler.candidates.fetched_candidates import FetchedCandidates
from roost.scheduler.nodes.table import NodeTable
from support.clouds import report

TABLE = NodeTable([report("b", "root-b"), report("a", "root-a"), report("c", "root-c")])


def summary(root: str, *traits: str, **levels: tuple[int, int]) -> ProviderSummary:
    resources = {name: InventoryUsage(*both) for name, both in levels.items()}
    return ProviderSummary.of(resources, traits, None, root)


SUMMARIES = {
    "root-a": summary("root-a", VCPU=(8, 2), DISK_GB=(100, 10)),
    "root-b": summary("root-b", VCPU=(8, 3)),
    "numa-b": summary("root-b", VCPU=(4, 0)),
    "gpu-b": summary("root-b", SHARING_TRAIT, CUSTOM_GPU=(2, 0)),
    "nfs": summary("nfs", SHARING_TRAIT, DISK_GB=(30, 0)),
}


def offers(*allocations: Allocations) -> FetchedCandidates:
    requests = [AllocationRequest.of(each, {"": list(each)}) for each in allocations]
    return FetchedCandidates(requests, SUMMARIES, TABLE)


def roots(*allocations: Allocations) -> list[list[str]]:
    """The roots of each offered host's candidates."""
    found = offers(*allocations)
    return [[each.root for each in found.candidates(place)] for place in range(len(found.index))]


def test_hosts_are_in_the_order_of_uuids_and_candidates_in_that_of_the_answer() -> None:
    found = offers({"root-a": {"VCPU": 1}}, {"numa-b": {"VCPU": 2}}, {"root-b": {"VCPU": 2}})
    assert found.index.tolist() == [1, 0]
    assert [list(each.allocations) for each in found.candidates(1)] == [["numa-b"], ["root-b"]]


def test_candidate_with_nothing_from_the_root_is_for_its_tree() -> None:
    assert roots({"numa-b": {"VCPU": 2}}) == [["root-b"]]


def test_candidate_with_a_sharing_provider_is_for_the_tree_that_does_not_share() -> None:
    assert roots({"nfs": {"DISK_GB": 5}, "root-b": {"VCPU": 1}}) == [["root-b"]]
    # A device below host b serves host a.
    assert roots({"gpu-b": {"CUSTOM_GPU": 1}, "root-a": {"VCPU": 1}}) == [["root-a"]]
    assert roots({"gpu-b": {"CUSTOM_GPU": 1}, "numa-b": {"VCPU": 1}}) == [["root-b"]]


def test_candidate_of_sharing_providers_alone_is_for_their_own_trees() -> None:
    assert roots({"nfs": {"DISK_GB": 5}}) == []
    assert roots({"nfs": {"DISK_GB": 5}, "gpu-b": {"CUSTOM_GPU": 1}}) == [["root-b"]]


def test_hosts_that_nobody_reports_are_left_out() -> None:
    assert roots({"elsewhere": {"VCPU": 1}}) == []


def test_provider_without_a_summary_is_taken_for_a_root_that_fits() -> None:
    assert roots({"root-c": {"VCPU": 1000}}) == [["root-c"]]


def test_totals_are_of_whole_trees() -> None:
    found = offers({"root-a": {"VCPU": 1}}, {"root-b": {"VCPU": 1}})
    assert found.capacity("VCPU").tolist() == [8, 12]
    assert found.used("VCPU").tolist() == [2, 3]
    assert found.capacity("DISK_GB").tolist() == [100, 0]
    assert found.used("CUSTOM_NONE").tolist() == [0, 0]


def test_claims_count() -> None:
    found = offers(
        {"root-b": {"VCPU": 5}}, {"numa-b": {"VCPU": 3}}, {"root-a": {"VCPU": 1}, "nfs": {"DISK_GB": 20}}
    )
    first, second = found.candidates(1)
    assert list(found.claimed(second)) == [1]
    assert list(found.candidates(1)) == [first]
    assert found.used("VCPU").tolist() == [2, 6]
    assert list(found.claimed(first)) == [1]
    assert list(found.candidates(1)) == []
    assert found.used("VCPU").tolist() == [2, 11]
    [with_disk] = found.candidates(0)
    assert list(found.claimed(with_disk)) == [0]
    assert list(found.candidates(0)) == [], "the shared disk has 10 of the 20 left"
