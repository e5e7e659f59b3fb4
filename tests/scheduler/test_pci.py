"""PCI devices of the pools that nodes report: aliases, groups in placement, hosts, and what claims took."""

from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from roost.fleet.hardware.pci_aliases import aliases_from
from roost.fleet.hardware.pci_choice import FreePools
from roost.fleet.hardware.pci_placement import groups_of
from roost.model.allocation import Candidate
from roost.model.assignment import Assigned, AssignedDevices, Assignment
from roost.model.node import NodeReport
from roost.model.request import all_of
from roost.model.spec import Image, PciRequest, RequestSpec
from roost.scheduler.candidates.candidate_source import HostView, OneHost
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import PciOptions, SchedulerOptions
from roost.scheduler.plugins.plugin_calls import verdict
from roost.scheduler.plugins.plugins import Lack
from roost.scheduler.request.demand.pci import pci_requests
from roost.scheduler.request.query import candidate_query
from roost.scheduler.request.scheduling_request import GroupPlacement
from support.clouds import report, spec, table_of
from support.offering import MadeUp, named_filters, scheduling_request

GPU = '{"name": "gpu", "vendor_id": "10de", "product_id": "2236", "device_type": "type-PCI"}'
FAST = (
    '{"name": "fast", "vendor_id": "8086", "product_id": "154d", "device_type": "type-VF", '
    '"numa_policy": "required", "resource_class": "fast-nic", "traits": "HW_NIC_SRIOV,gold"}'
)
OTHER_GPU = '{"name": "gpu", "vendor_id": "10de", "product_id": "20b0", "device_type": "type-PCI"}'
PORT = PciRequest(id="port-1", specs=({"physical_network": "physnet1", "remote_managed": "False"},))


def options(*aliases: str, in_placement: bool = False) -> SchedulerOptions:
    return SchedulerOptions(pci=PciOptions(aliases_from(aliases, in_placement=in_placement), in_placement))


def of_alias(text: str, **more: Any) -> RequestSpec:
    return spec(extra_specs={"pci_passthrough:alias": text}, **more)


def pool(ids: str, count: int = 1, **more: Any) -> dict[str, object]:
    vendor, product = ids.split(":")
    return {"vendor_id": vendor, "product_id": product, "count": count, "numa_node": None} | more


# Aliases


def test_aliases_of_the_same_name_are_alternatives() -> None:
    found = aliases_from([GPU, FAST, OTHER_GPU])
    assert [each["product_id"] for each in found["gpu"].specs] == ["2236", "20b0"]
    assert (found["gpu"].numa_policy, found["fast"].numa_policy) == ("legacy", "required")


@pytest.mark.parametrize(
    ("texts", "in_placement", "wrong"),
    [
        (["[]"], False, "is not a JSON object"),
        (["{"], False, "is not a JSON object"),
        (['{"name": " ", "vendor_id": "8086", "product_id": "0443"}'], False, "has no name"),
        (['{"name": "a", "vendor_id": "8086"}'], False, "needs vendor_id and product_id"),
        (['{"name": "a", "resource_class": "GPU"}'], False, "needs vendor_id and product_id"),
        (['{"name": "a", "vendor_id": "8086"}'], True, "or a resource_class"),
        (['{"name": "a", "vendor_id": "0x80", "product_id": "0443"}'], False, "vendor_id '0x80'"),
        (['{"name": "a", "colour": "red"}'], False, "colour is unknown"),
        ([GPU.replace("type-PCI", "vdpa")], False, "device_type 'vdpa'"),
        ([GPU.replace("}", ', "numa_policy": "near"}')], False, "numa_policy 'near'"),
        ([GPU.replace("}", ', "live_migratable": "maybe"}')], False, "live_migratable 'maybe'"),
        ([GPU, OTHER_GPU], True, "is given twice"),
        ([GPU, OTHER_GPU.replace("type-PCI", "type-PF")], False, "two values of device_type"),
        ([GPU, OTHER_GPU.replace("}", ', "numa_policy": "socket"}')], False, "two values of numa_policy"),
    ],
)
def test_an_invalid_alias_is_refused(texts: list[str], in_placement: bool, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        aliases_from(texts, in_placement=in_placement)


def test_the_policy_of_a_port_goes_before_flavor_and_image_and_theirs_before_an_alias() -> None:
    near = msgspec.structs.replace(PORT, id="port-2", numa_policy="required")
    asked = of_alias("gpu:2, fast:1", pci_requests=(PORT, near))
    assert [(each.id, each.count, each.numa_policy) for each in pci_requests(asked, options(GPU, FAST))] == [
        ("pci_0", 2, "legacy"),
        ("pci_1", 1, "required"),
        ("port-1", 1, None),
        ("port-2", 1, "required"),
    ]
    image = Image("i", properties={"hw_pci_numa_affinity_policy": "preferred"})
    asked = msgspec.structs.replace(asked, image=image)
    policies = [each.numa_policy for each in pci_requests(asked, options(GPU, FAST))]
    assert policies == ["preferred", "preferred", "preferred", "required"]


def test_aliases_that_the_spec_has_requests_for_are_not_read_again() -> None:
    resolved = PciRequest(id="77", specs=({"vendor_id": "10de"},), alias="gpu")
    assert pci_requests(of_alias("gpu:1", pci_requests=(resolved,)), options()) == (resolved,)


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        (of_alias("gpu"), "'gpu' does not have the form name:count"),
        (of_alias("gpu:0"), "'gpu:0' does not have the form"),
        (of_alias("gpu:1,"), "'' does not have the form"),
        (of_alias("fpga:1"), "'fpga' is none of the aliases"),
        (spec(pci_requests=(PORT, PORT)), "two PCI requests have the id 'port-1'"),
        (spec(pci_requests=(msgspec.structs.replace(PORT, id="ä"),)), "an id is 1 to 56 letters"),
        (spec(pci_requests=(msgspec.structs.replace(PORT, count=0),)), "count 0 is not from 1"),
        (
            spec(
                extra_specs={"pci_passthrough:alias": "gpu:1", "hw:pci_numa_affinity_policy": "socket"},
                image=Image("i", properties={"hw_pci_numa_affinity_policy": "legacy"}),
            ),
            "hw:pci_numa_affinity_policy",
        ),
    ],
)
def test_invalid_requests_are_refused(asked: RequestSpec, wrong: str) -> None:
    with pytest.raises(BadRequestSpec, match=wrong):
        pci_requests(asked, options(GPU))


# Devices in placement


def test_each_device_of_an_alias_is_a_group_of_its_own_in_placement() -> None:
    chosen = options(GPU, FAST, in_placement=True)
    query = candidate_query(of_alias("gpu:2,fast:1", pci_requests=(PORT,)), NodeTable(), chosen)
    groups = {group.suffix: (group.resources, group.required) for group in query.groups if group.suffix}
    assert groups == {
        "pci_0-0": ({"CUSTOM_PCI_10DE_2236": 1}, ()),
        "pci_0-1": ({"CUSTOM_PCI_10DE_2236": 1}, ()),
        "pci_1-0": ({"CUSTOM_FAST_NIC": 1}, all_of("CUSTOM_GOLD", "HW_NIC_SRIOV")),
    }
    assert not query.isolate
    plain = candidate_query(of_alias("gpu:2"), NodeTable(), options(GPU))
    assert all(not group.suffix for group in plain.groups)


def test_the_owner_is_asked_of_the_groups_of_devices() -> None:
    table = NodeTable([report("h", "n", service_version=73)])
    query = candidate_query(of_alias("gpu:1"), table, options(GPU, in_placement=True))
    assert {group.suffix: group.required for group in query.groups}["pci_0-0"] == all_of("OWNER_NOVA")


def test_several_specs_cannot_be_asked_of_placement() -> None:
    several = PciRequest(id="1", specs=({"vendor_id": "1"}, {"vendor_id": "2"}), alias="gpu")
    with pytest.raises(ValueError, match="several specs"):
        groups_of(several)
    with pytest.raises(BadRequestSpec, match="several specs"):
        candidate_query(spec(pci_requests=(several,)), NodeTable(), options(in_placement=True))


@pytest.mark.parametrize(
    ("written", "name"),
    [("VGPU", "VGPU"), ("custom_x", "CUSTOM_X"), ("my gpu", "CUSTOM_MY_GPU"), ("pgpu", "PGPU")],
)
def test_names_of_classes_are_normalised(written: str, name: str) -> None:
    asked = PciRequest(id="1", specs=({"resource_class": written},), alias="a")
    assert groups_of(asked)[0].resources == {name: 1}


# Hosts


class Assigning(MadeUp):
    """Offers on nodes that have assignments."""

    def __init__(self, *assigned: Assigned) -> None:
        super().__init__([1] * len(assigned))
        self._assigned = assigned

    def assigned(self, node: str) -> Assigned:
        return self._assigned[int(node.removeprefix("n"))]


def view_of(*pools: list[dict[str, object]], assigned: dict[int, Assigned] | None = None) -> HostView:
    reports: list[NodeReport] = [
        report(f"h{number}", f"n{number}", pci_device_pools=tuple(each)) for number, each in enumerate(pools)
    ]
    return HostView(table_of(reports), Assigning(*((assigned or {}).get(at, {}) for at in range(len(pools)))))


def passing(view: HostView, asked: RequestSpec, *aliases: str) -> list[int] | None:
    [plugin] = named_filters("PciPassthroughFilter")
    request = msgspec.structs.replace(scheduling_request(of=asked), options=options(*aliases))
    mask = verdict(plugin, view, request, GroupPlacement())
    return None if mask is None else np.flatnonzero(mask).tolist()


def test_hosts_with_enough_free_devices_pass() -> None:
    view = view_of(
        [],
        [pool("10de:2236")],
        [pool("10de:2236", address="a"), pool("10de:2236", address="b"), pool("8086:154d", 9)],
        [pool("10de:2236"), pool("10de:20b0", numa_node=1)],
        [pool("10de:20b0", 2, dev_type="type-PF")],
    )
    plain = GPU.replace(', "device_type": "type-PCI"', "")
    assert passing(view, spec()) is None
    assert passing(view, of_alias("gpu:1"), plain) == [1, 2, 3]
    assert passing(view, of_alias("gpu:2"), plain) == [2]
    both = OTHER_GPU.replace(', "device_type": "type-PCI"', "")
    assert passing(view, of_alias("gpu:2"), plain, both) == [2, 3]
    assert passing(view, of_alias("gpu:1,gpu:1"), plain) == [2]
    of_card = PciRequest(id="1", specs=({"address": "b"},))
    assert passing(view, spec(pci_requests=(of_card,))) == [2]


def test_hosts_are_judged_at_once_as_one_by_one() -> None:
    random = Random(11)
    ids = ("10de:2236", "10de:20b0", "8086:154d")
    plain = GPU.replace(', "device_type": "type-PCI"', "")
    other = OTHER_GPU.replace(', "device_type": "type-PCI"', "").replace('"gpu"', '"other"')
    any_gpu = [plain.replace('"gpu"', '"any"'), other.replace('"other"', '"any"')]
    aliases = (plain, other, *any_gpu)
    for _ in range(40):
        hosts = [
            [
                pool(random.choice(ids), random.randint(1, 3), address=f"{host}-{at}")
                for at in range(random.randint(0, 3))
            ]
            for host in range(12)
        ]
        view = view_of(*hosts)
        names = [f"{random.choice(('gpu', 'other', 'any'))}:{random.randint(1, 3)}" for _ in range(3)]
        asked = of_alias(",".join(names[: random.randint(1, 3)]))
        requests = pci_requests(asked, options(*aliases))
        one_by_one = [at for at in range(12) if view.table.pci.pools(at).choose(requests) is not None]
        assert passing(view, asked, *aliases) == one_by_one


def test_pools_are_decoded_once_and_again_when_they_differ() -> None:
    view = view_of([pool("10de:2236")], [pool("10de:2236", 2)], [])
    table = view.table
    assert table.decode(1)
    assert not table.decode(2)
    first = table.pci.pools(0)
    again = report("h0", "n0", pci_device_pools=(pool("10de:2236"),), num_instances=3)
    table.update([again, report("h1", "n1", pci_device_pools=(pool("10de:20b0"),))])
    assert table.pci.pools(0) is first
    assert table.pci.pools(1).pools[0].properties["product_id"] == "20b0"


def test_a_host_is_judged_by_its_last_report() -> None:
    view = view_of([pool("10de:2236")], [], [])
    asked = of_alias("gpu:1")
    plain = GPU.replace(', "device_type": "type-PCI"', "")
    assert passing(view, asked, plain) == [0]
    view.table.update([report("h0", "n0"), report("h2", "n2", pci_device_pools=(pool("10de:2236"),))])
    assert passing(view, asked, plain) == [2]
    more = [report(f"h{at}", f"n{at}", pci_device_pools=(pool("10de:2236"),)) for at in range(3, 40)]
    view.table.update(more)
    assert passing(HostView(view.table, Assigning(*[{}] * 40)), asked, plain) == [2, *range(3, 40)]


def test_devices_that_claims_took_are_not_free() -> None:
    plain = GPU.replace(', "device_type": "type-PCI"', "")
    asked = of_alias("gpu:2")
    free = view_of([pool("10de:2236", 3)])
    found = table_pools(free).choose(pci_requests(asked, options(plain)))
    assert found is not None
    taken = {"a": Assignment("n0", devices=found)}
    assert passing(view_of([pool("10de:2236", 3)], assigned={0: taken}), asked, plain) == []
    assert passing(view_of([pool("10de:2236", 4)], assigned={0: taken}), asked, plain) == [0]


def table_pools(view: HostView) -> Any:
    return view.table.pci.pools(0)


def lacking(view: HostView, asked: RequestSpec) -> Lack:
    [plugin] = named_filters("PciPassthroughFilter")
    host = OneHost(view.table, view._totals, 0, lambda provider, resource_class: (1, 0))
    request = msgspec.structs.replace(scheduling_request(of=asked), options=options(GPU))
    found: Lack = plugin.lack(host, request, GroupPlacement())
    return found


@pytest.mark.parametrize(
    ("pools", "asked", "text", "distance"),
    [
        ([], of_alias("gpu:2"), "has 0 of the 2 PCI devices free that alias gpu asks for", 1.0),
        (
            [pool("10de:2236")],
            of_alias("gpu:2"),
            "has 1 of the 2 PCI devices free that alias gpu asks for",
            0.5,
        ),
        ([], spec(pci_requests=(PORT,)), "has 0 of the 1 PCI devices free that port port-1 asks for", 1.0),
        ([pool("10de:2236")], of_alias("gpu:1,gpu:1"), "has too few PCI devices free for all requests", 0.1),
        ([pool("10de:2236")], of_alias("gpu:1"), "not of the providers that placement offers", 0.1),
    ],
)
def test_a_host_says_what_it_lacks(
    pools: list[dict[str, object]], asked: RequestSpec, text: str, distance: float
) -> None:
    found = lacking(view_of([{**each, "dev_type": "type-PCI"} for each in pools]), asked)
    assert text in found.text
    assert found.distance == distance


def narrowed(
    view: HostView, candidates: list[Candidate], asked: RequestSpec, *aliases: str
) -> list[Candidate]:
    [plugin] = named_filters("PciPassthroughFilter")
    host = OneHost(view.table, view._totals, 0, lambda provider, resource_class: (1, 0))
    request = msgspec.structs.replace(
        scheduling_request(of=asked), options=options(*aliases, in_placement=True)
    )
    return list(plugin.narrow(host, candidates, request))


def candidate(**mappings: str) -> Candidate:
    return Candidate(
        "n0", {"n0": {"VCPU": 1}}, {suffix.replace("__", "-"): [one] for suffix, one in mappings.items()}
    )


def test_candidates_get_the_devices_of_their_providers() -> None:
    plain = GPU.replace(', "device_type": "type-PCI"', "")
    view = view_of([pool("10de:2236", address=at, rp_uuid=f"p-{at}") for at in "abc"])
    offered = [
        candidate(pci_0__0="p-b", pci_0__1="p-c"),
        candidate(pci_0__0="p-c", pci_0__1="p-b"),
        candidate(pci_0__0="p-a", pci_0__1="p-gone"),
    ]
    left = narrowed(view, offered, of_alias("gpu:2"), plain)
    assert [each.mappings for each in left] == [each.mappings for each in offered[:2]]
    for each in left:
        assert each.assignment is not None
        assert each.assignment.node == "n0"
        assert [one.addresses for one in each.assignment.devices] == [("b",), ("c",)]


def test_devices_that_are_assigned_already_stay() -> None:
    plain = GPU.replace(', "device_type": "type-PCI"', "")
    view = view_of([pool("10de:2236", 2)])
    [once] = narrowed(view, [candidate()], of_alias("gpu:1"), plain)
    assert narrowed(view, [once], of_alias("gpu:1"), plain) == [once]
    assert narrowed(view, [candidate()], spec()) == [candidate()]


# Moves


MIGRATABLE = GPU.replace("}", ', "live_migratable": "true"}')
VDPA_PORT = PciRequest(id="port-2", specs=({"dev_type": "vdpa"},), requester_id="port-2")


@pytest.mark.parametrize(
    ("asked", "version", "wrong"),
    [
        (of_alias("gpu:1", operation="live_migrate"), 0, None),
        (of_alias("fast:1", operation="live_migrate"), 0, "alias 'fast' cannot be live migrated"),
        (of_alias("fast:1", operation="migrate"), 0, None),
        (spec(pci_requests=(PORT,), operation="live_migrate"), 36, None),
        (spec(pci_requests=(PORT,), operation="live_migrate"), 35, "SR-IOV device of port .* version 35"),
        (
            spec(pci_requests=(VDPA_PORT,), operation="live_migrate"),
            62,
            "version 62, and all need 63",
        ),
        (spec(pci_requests=(VDPA_PORT,), operation="live_migrate"), 63, None),
        (spec(pci_requests=(VDPA_PORT,), operation="live_migrate"), 0, None),
        (spec(pci_requests=(VDPA_PORT,), operation="migrate"), 62, None),
    ],
)
def test_devices_that_cannot_be_live_migrated(asked: RequestSpec, version: int, wrong: str | None) -> None:
    table = NodeTable([report("h", "n", service_version=version)])
    if wrong is None:
        candidate_query(asked, table, options(MIGRATABLE, FAST))
        return
    with pytest.raises(BadRequestSpec, match=wrong):
        candidate_query(asked, table, options(MIGRATABLE, FAST))


def test_devices_that_a_claim_takes_are_no_longer_weighed_as_free() -> None:
    table = table_of([report("h0", "n0", pci_device_pools=(pool("10de:2236", 3),)), report("h1", "n1")])
    assert table.free_pci_devices.tolist()[:2] == [3, 0]
    before = table.invalidations.end
    table.claim("plain", 0)
    assert table.invalidations.end == before
    taken = Assignment("n0", devices=(AssignedDevices("r", "10de:2236", 2),))
    table.claim("one", 0, assignment=taken)
    assert table.free_pci_devices.tolist()[:2] == [1, 0]
    assert table.invalidations.end == before + 1
    table.update([report("h0", "n0", pci_device_pools=(pool("10de:2236", 2),))])
    assert table.free_pci_devices.item(0) == 0
    table.release("one")
    assert table.free_pci_devices.item(0) == 2


def test_requests_together_are_judged_once_for_each_kind_of_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = of_alias("gpu:1,gpu:2")
    reported = [[pool("10de:2236", 2, rp_uuid=f"p{at}", dev_type="type-PCI")] for at in range(5)]
    reported += [[pool("10de:2236", 3, dev_type="type-PCI", address=f"{at}")] for at in range(5)]
    view = view_of(*reported)
    times = []
    choose = FreePools.choose
    monkeypatch.setattr(FreePools, "choose", lambda *given: times.append(1) or choose(*given))
    assert passing(view, asked, GPU) == [5, 6, 7, 8, 9]
    assert len(times) == 2
