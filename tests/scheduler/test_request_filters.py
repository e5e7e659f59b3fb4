"""Request filters: what they add to a query."""

import pytest

from roost.model.node import HostAggregate
from roost.model.request import CandidateQuery, RequestGroup, all_of
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.request_filters import RequestFilter
from roost.scheduler.request_filters.availability_zone import ask_for_zone
from roost.scheduler.request_filters.compute_status import leave_out_disabled
from roost.scheduler.request_filters.requested_host import ask_for_host
from support.clouds import report, spec

TABLE = NodeTable(
    [
        report(f"host{number}", f"node{number}", aggregates=(HostAggregate(f"agg{number}", "", metadata),))
        for number, metadata in enumerate(
            [{"availability_zone": "az1"}, {"availability_zone": "az1"}, {"availability_zone": "nova"}]
        )
    ]
)
FLAT = RequestGroup({"VCPU": 1}, member_of=all_of("other"))
PORT = RequestGroup({"CUSTOM_GPU": 1}, "_port")
DISK = RequestGroup({"DISK_GB": 1}, "_disk")
QUERY = CandidateQuery((FLAT, PORT))
GRANULAR = CandidateQuery((PORT, DISK))


def narrowed(request_filter: RequestFilter, query: CandidateQuery, **wishes: object) -> CandidateQuery:
    return request_filter(query, spec(**wishes), TABLE, SchedulerOptions())


def test_disabled_hosts_are_left_out() -> None:
    assert narrowed(leave_out_disabled, QUERY).root_forbidden == {DISABLED_TRAIT}


def test_zone_is_any_of_its_aggregates() -> None:
    unsuffixed, port = narrowed(ask_for_zone, QUERY, availability_zone="az1").groups
    assert unsuffixed.member_of == (frozenset({"other"}), frozenset({"agg0", "agg1"}))
    assert port == PORT


@pytest.mark.parametrize("zone", [None, "nova", "unheard of"])
def test_zone_is_left_to_the_filter_where_placement_cannot_tell(zone: str | None) -> None:
    assert narrowed(ask_for_zone, QUERY, availability_zone=zone) == QUERY


def test_zone_is_left_to_the_filter_where_no_group_spans_the_tree() -> None:
    # A device below a root that is in the zone is itself in no aggregate.
    assert narrowed(ask_for_zone, GRANULAR, availability_zone="az1") == GRANULAR


def test_requested_host_is_its_tree() -> None:
    unsuffixed, port = narrowed(ask_for_host, QUERY, requested_host="host1").groups
    assert (unsuffixed.in_tree, port.in_tree) == ("node1", None)
    assert [group.in_tree for group in narrowed(ask_for_host, GRANULAR, requested_host="host1").groups] == [
        "node1",
        "node1",
    ]
    assert narrowed(ask_for_host, QUERY) == QUERY


def test_requested_host_that_is_unknown() -> None:
    with pytest.raises(BadRequestSpec, match="requested host 'host9' is unknown"):
        narrowed(ask_for_host, QUERY, requested_host="host9")
