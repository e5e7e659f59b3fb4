"""Workloads: what a runner may rely on."""

from hypothesis import given
from hypothesis import strategies as st

from roost.bench.replay.workload import (
    Host,
    Workload,
    WorkloadAggregate,
    WorkloadHostTree,
    WorkloadRequest,
    into_bins,
    project_id,
)
from roost.model.spec import Flavor

FLAVOR = Flavor("small", 1, 1024)


def request(at: int, *lifetimes: int | None) -> WorkloadRequest:
    return WorkloadRequest(at, project_id("somebody"), FLAVOR, lifetimes or (60,))


def test_departures_are_arrival_plus_lifetime_and_none_for_those_that_stay() -> None:
    assert request(300, 60, None, 0).departures == (360, None, 300)


@given(st.lists(st.integers(0, 5000)), st.integers(1, 700))
def test_bins_keep_every_request_in_order_at_its_time(times: list[int], width: int) -> None:
    requests = [request(at) for at in sorted(times)]
    bins = into_bins(requests, width)
    assert [each for bin_ in bins for each in bin_.requests] == requests
    assert [bin_.start for bin_ in bins] == sorted({at // width * width for at in times})
    assert all(bin_.start <= each.at < bin_.start + width for bin_ in bins for each in bin_.requests)


def test_workload_counts_requests_and_instances() -> None:
    workload = Workload("test", (), into_bins([request(0, 1, 2, 3), request(0), request(900, None, None)]))
    assert (workload.requests, workload.instances) == (3, 6)


def test_availability_zone_comes_from_the_aggregate_that_has_one() -> None:
    zone, other = (
        WorkloadAggregate("zone-1", {"availability_zone": "az-1"}),
        WorkloadAggregate("ssd", {"ssd": "true"}),
    )
    shape = WorkloadHostTree({"VCPU": 1})
    assert Host("a", shape, aggregates=(other, zone)).availability_zone == "az-1"
    assert Host("b", shape, aggregates=(other,)).availability_zone is None


def test_project_ids_are_hexadecimal_and_always_the_same() -> None:
    assert project_id("azure/1800000/0") == "0ab111e0adb655c9ae28f4f3ddbeb0d1"
    assert project_id("azure/1800000/1") != project_id("azure/1800000/0")
