"""Weighers that Nova does not have, shuffling of equal hosts, and fragmentation."""

import json
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest

from roost.model.aggregate import HostAggregate
from roost.model.allocation import Candidate
from roost.model.node import NodeInstance
from roost.model.request import CandidateQuery, RequestGroup
from roost.model.spec import RequestSpec, ServerGroup
from roost.scheduler.candidates.candidate_order import CandidateOrder
from roost.scheduler.candidates.candidate_source import HostView, OneHost, ProviderLevels
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugin_calls import ask_key, ask_weigher
from roost.scheduler.request.scheduling_request import ELSEWHERE, GroupPlacement
from roost.scheduler.weighers.fragmentation import (
    FragmentationOptions,
    HostColumns,
    TypicalRequest,
    fragmentation,
)
from support.clouds import InAggregates, report, spec, table_of
from support.offering import MadeUp, driven, hosts, named_weighers, plugins, scheduling_request, select, where


def numbers(name: str, table: NodeTable, of: RequestSpec, members: dict[int, int] | None = None) -> object:
    [weigher] = named_weighers(name)
    asked = scheduling_request(of=of)
    if ask_key(weigher, asked) is None:
        return None
    view = HostView(table, MadeUp([1] * len(table)))
    raw = ask_weigher(weigher, view, asked, GroupPlacement(Counter(members or {})))
    return None if raw is None else raw.tolist()


def test_preferred_traits_of_flavor_and_hint() -> None:
    table = hosts(3)
    assert numbers("PreferredTraitsWeigher", table, spec()) is None
    flavored = spec(extra_specs={"preferred_trait:EVEN": "2.5", "preferred_trait:NONE": "7"})
    assert numbers("PreferredTraitsWeigher", table, flavored) == [2.5, 0, 2.5]
    avoided = spec(extra_specs={"preferred_trait:EVEN": "-1"})
    assert numbers("PreferredTraitsWeigher", table, avoided) == [-1, 0, -1]
    hinted = spec(scheduler_hints={"preferred_traits": ("EVEN",)})
    assert numbers("PreferredTraitsWeigher", table, hinted) == [1, 0, 1]
    with pytest.raises(BadRequestSpec, match="extra spec preferred_trait:EVEN: 'much' is not a number"):
        numbers("PreferredTraitsWeigher", table, spec(extra_specs={"preferred_trait:EVEN": "much"}))


def test_instances_of_the_project_are_not_stacked() -> None:
    project = spec().project_id
    mine, other = NodeInstance(project_id=project), NodeInstance(project_id="other")
    table = NodeTable(
        [
            report("two", "n0", instances={"a": mine, "b": mine}),
            report("other", "n1", instances={"c": other}),
            report("one", "n2", instances={"d": mine, "e": other}),
        ]
    )
    assert numbers("AntiStackingWeigher", table, spec()) == [-2, 0, -1]


def test_members_of_a_group_are_spread_over_failure_domains() -> None:
    def in_zone(host: str, node: str, zone: str | None) -> InAggregates:
        metadata = {} if zone is None else {"availability_zone": zone}
        return report(host, node, aggregates=(HostAggregate(f"g{zone}", "name", metadata),))

    zones = ("a", "a", "b", None, None)
    table = table_of(in_zone(f"h{number}", f"n{number}", zone) for number, zone in enumerate(zones))
    grouped = spec(group=ServerGroup("group", "soft-anti-affinity"))
    assert numbers("FailureDomainWeigher", table, spec()) is None
    assert numbers("FailureDomainWeigher", table, grouped, {0: 2, 3: 1}) == [-2, -2, 0, -1, 0]
    # Members elsewhere are in no domain, whatever the last node of the table is in.
    full = table_of(in_zone(f"h{number}", f"n{number}", "a") for number in range(16))
    assert numbers("FailureDomainWeigher", full, grouped, {ELSEWHERE: 2}) == [0] * 16


def test_equal_hosts_are_shuffled_only_if_the_option_says_so() -> None:
    among: list[int] = []

    def last(n: int) -> int:
        among.append(n)
        return n - 1

    def chosen(size: int, shuffle: bool) -> list[str]:
        asked = scheduling_request(1, host_subset_size=size, shuffle_best_same_weighed_hosts=shuffle)
        outcome, _ = driven(select(asked, hosts(20), MadeUp([2, *[5] * 18, 1]), plugins(), last))
        return where(outcome)

    assert chosen(1, False) == ["host1"]
    assert among == []
    assert chosen(1, True) == ["host18"]
    assert chosen(3, True) == ["host18"]
    assert chosen(19, True) == ["host0"]
    assert among == [18, 18, 19]


WORKLOAD = (
    TypicalRequest(1.0, {"VCPU": 4}, 1, 500),
    TypicalRequest(1.0, {"VCPU": 8}, 2, 1000),
    TypicalRequest(2.0, {"VCPU": 1}),
)


def test_fragmentation_is_what_typical_requests_cannot_use() -> None:
    found = fragmentation(
        HostColumns(
            {"VCPU": np.array([8.0, 8.0, 2.0, 8.0])},
            np.array([[1000, 1000], [1000, 300], [1000, 1000], [-1, -1]]),
            1000,
            {},
        ),
        WORKLOAD,
    )
    # Requests without devices use none of them. Two devices cannot be had of the second host, and the 300
    # that are left of one device are too little for the first kind. The third host lacks processors.
    expected = [0.5 * 2000, 0.25 * 300 + 0.25 * 1300 + 0.5 * 1300, 2000, 0]
    assert found.tolist() == expected


def test_request_goes_where_fragmentation_grows_least(tmp_path: Path) -> None:
    file = tmp_path / "workload.json"
    file.write_text(json.dumps([{"share": 1, "resources": {}, "devices": 1, "amount": 5}]))
    own = {"FragmentationWeigher": FragmentationOptions("VCPU", str(file))}
    [weigher] = named_weighers("FragmentationWeigher", plugins=own)
    raw = ask_weigher(
        weigher, HostView(hosts(4), MadeUp([5, 6, 9, 4])), scheduling_request(), GroupPlacement()
    )
    assert raw is not None
    # Each host has one device, which gives 1: of 5 the 4 that are left are lost, of 6 and 9 nothing.
    assert raw.tolist() == [-4.0, 0.0, 0.0, 1.0]
    [idle] = named_weighers("FragmentationWeigher")
    assert ask_key(idle, scheduling_request()) is None


class Devices(MadeUp):
    """One host with a device for each number, which is what the device has left of 10."""

    def __init__(self, *left: int) -> None:
        super().__init__([1])
        self._of_devices = left

    def providers(self, resource_class: str) -> ProviderLevels:
        free = np.array(self._of_devices, dtype=np.int64)
        return ProviderLevels(np.zeros(len(free), dtype=np.intp), np.full(len(free), 10), 10 - free)

    def level(self, provider: str, resource_class: str) -> tuple[int, int]:
        return 10, 10 - self._of_devices[int(provider.removeprefix("gpu"))]


@pytest.mark.parametrize(
    ("wanted", "left", "best"),
    [
        (5, (6, 5), "gpu1"),  # of the first 1 would be left, which nobody can use
        (5, (9, 10), "gpu1"),  # of the first 4
        (1, (5, 6), "gpu1"),  # from 6 one can be spared
        (5, (10, 5), "gpu0"),  # equal ones stay in placement's order
    ],
)
def test_device_is_chosen_by_which_fragmentation_grows_least(
    wanted: int, left: tuple[int, ...], best: str, tmp_path: Path
) -> None:
    file = tmp_path / "workload.json"
    file.write_text(json.dumps([{"share": 1, "devices": 1, "amount": 5}]))
    own = {"FragmentationWeigher": FragmentationOptions("VGPU", str(file))}
    [weigher] = named_weighers("FragmentationWeigher", plugins=own)
    candidates = [
        Candidate("node0", {f"gpu{number}": {"VGPU": wanted}}, {"": [f"gpu{number}"]})
        for number, free in enumerate(left)
        if free >= wanted
    ]
    query = CandidateQuery((RequestGroup({"VGPU": wanted}),))
    asked = msgspec.structs.replace(scheduling_request(), query=query)
    offers = Devices(*left)
    ordered = CandidateOrder((), [weigher], asked).of(
        OneHost(hosts(1), offers, 0, offers.level), iter(candidates)
    )
    assert next(iter(next(ordered).allocations)) == best
