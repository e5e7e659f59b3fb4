"""Which devices of a node's pools requests get: hand-made cases of Nova's rules, and those that go beyond."""

from typing import Any

import pytest

from roost.fleet.hardware.pci_choice import FreePools
from roost.fleet.hardware.pci_pools import free_devices
from roost.model.assignment import AssignedDevices
from roost.model.spec import PciRequest

NIC = {"vendor_id": "8086", "product_id": "154d"}
VF = {"vendor_id": "8086", "product_id": "10ed"}
GPU = {"vendor_id": "10de", "product_id": "2236"}
PF_A, PF_B = "0000:81:00.0", "0000:82:00.0"
SOCKETS = {0: 0, 1: 0, 2: 1, 3: 1}


def pool(ids: dict[str, str], dev_type: str = "type-PCI", count: int = 1, **more: Any) -> dict[str, Any]:
    return {**ids, "dev_type": dev_type, "numa_node": None, "count": count, **more}


def wants(*specs: dict[str, str | None], count: int = 1, policy: Any = None, **more: Any) -> PciRequest:
    return PciRequest(id=more.pop("id", "r"), count=count, specs=specs, numa_policy=policy, **more)


def chosen(found: tuple[AssignedDevices, ...] | None) -> list[tuple[str, int, tuple[str, ...]]] | None:
    return None if found is None else [(each.request, each.count, each.addresses) for each in found]


def test_devices_come_from_the_first_pools_that_suit():
    pools = FreePools.reported(
        [pool(GPU, count=2, address="a", label="x"), pool(GPU, count=3), pool(NIC, count=9)]
    )
    found = pools.choose([wants(GPU, count=4)])
    # Pools with fewer tags are used first.
    assert chosen(found) == [("r", 3, ()), ("r", 1, ())]
    assert found is not None and "label=x" in found[1].pool
    assert pools.choose([wants(GPU, count=6)]) is None
    assert pools.choose([wants(GPU, count=3), wants(GPU, count=3, id="s")]) is None
    assert pools.choose([]) == ()


def test_a_device_has_all_properties_of_one_alternative():
    pools = FreePools.reported([pool(NIC, "type-VF", physical_network="PhysNet1", remote_managed="false")])
    assert pools.choose([wants(GPU, {"physical_network": "physnet1", "remote_managed": "False"})])
    assert pools.choose([wants(NIC | {"physical_network": "physnet2"})]) is None
    assert pools.choose([wants(NIC | {"trusted": None})])
    assert pools.choose([wants(NIC | {"trusted": "true"})]) is None
    assert pools.choose([wants()]) is None
    # Placement decides on these.
    assert pools.choose([wants(NIC | {"resource_class": "CUSTOM_NIC", "traits": "CUSTOM_FAST"})])


def test_a_pool_may_be_a_serialised_object():
    reported = {
        "nova_object.name": "PciDevicePool",
        "nova_object.data": {**VF, "numa_node": 1, "count": 4, "tags": {"dev_type": "type-VF"}},
    }
    assert free_devices([reported]) == 4
    found = FreePools.reported([reported]).choose([wants(VF, count=2, policy="required")], host_cells={1})
    assert chosen(found) == [("r", 2, ())]
    assert FreePools.reported([reported]).choose([wants(VF, policy="required")], host_cells={0}) is None


@pytest.mark.parametrize("count", [None, "many", True, -1, 0, 1.5])
def test_a_pool_without_a_valid_count_has_no_devices(count):
    reported = [pool(GPU) | {"count": count}]
    assert not FreePools.reported(reported)
    assert free_devices(reported) == 0


@pytest.mark.parametrize(
    ("dev_type", "tags"), [("type-PF", {}), ("vdpa", {}), ("type-VF", {"remote_managed": "true"})]
)
def test_special_devices_are_for_requests_that_name_their_kind(dev_type, tags):
    pools = FreePools.reported([pool(NIC, dev_type, **tags)])
    assert pools.choose([wants(NIC)]) is None
    assert pools.choose([wants(NIC | {"dev_type": dev_type} | tags)])


@pytest.mark.parametrize(
    ("policy", "cells", "nodes"),
    [
        ("required", {0}, [0]),
        ("required", {3}, None),
        ("legacy", {0}, [0]),
        ("legacy", {3}, [None]),
        (None, {3}, [None]),
        ("preferred", {1}, [1]),
        ("preferred", {3}, [None]),
        ("socket", {1}, [1]),
        ("socket", {3}, [2]),
        ("required", None, [0]),
    ],
)
def test_numa_policies(policy, cells, nodes):
    reported = [pool(GPU, numa_node=node) for node in (0, 1, 2, None)]
    found = FreePools.reported(reported).choose([wants(GPU, policy=policy)], cells, SOCKETS)
    text = ["10de:2236 dev_type=type-PCI" + ("" if n is None else f" numa_node={n}") for n in nodes or ()]
    assert (found and [each.pool for each in found]) == (text or None)


def test_a_preference_is_for_near_devices_and_takes_far_ones():
    reported = [pool(GPU, numa_node=node) for node in (0, 1, None)]
    pools = FreePools.reported(reported)
    assert len(pools.choose([wants(GPU, count=3, policy="preferred")], {1}) or ()) == 3
    assert pools.choose([wants(GPU, count=3, policy="legacy")], {1}) is None
    far = FreePools.reported(reported[:1])
    assert far.choose([wants(GPU, policy="preferred")], {1})
    assert far.choose([wants(GPU, policy="socket")], {1}, SOCKETS)
    assert far.choose([wants(GPU, policy="socket")], {1}, {0: 0, 1: None}) is None


def test_devices_are_those_of_the_candidates_providers():
    reported = [pool(GPU, address=at, rp_uuid=f"provider-{at}") for at in ("a", "b", "c")]
    pools = FreePools.reported(reported)
    mappings = {"": ["root"], "r-0": ["provider-c"], "r-1": ["provider-a"], "r-10": ["provider-b"]}
    found = pools.choose([wants(GPU, count=2, alias="gpu")], mappings=mappings)
    assert chosen(found) == [("r", 1, ("a",)), ("r", 1, ("c",))]
    assert pools.choose([wants(GPU, alias="gpu")], mappings={"r-0": ["provider-d"]}) is None
    # Ports have no groups in placement.
    assert chosen(pools.choose([wants(GPU)], mappings=mappings)) == [("r", 1, ("a",))]


def test_addresses_are_named_where_the_node_reports_them():
    reported = [
        pool(VF, "type-VF", count=3, devices=["v1", "v2", "v3"], address=PF_A),
        pool(GPU, address="g"),
    ]
    pools = FreePools.reported(reported)
    found = pools.choose([wants(VF, count=2), wants(VF, id="s"), wants(GPU, id="t")])
    assert chosen(found) == [("r", 2, ("v1", "v2")), ("s", 1, ("v3",)), ("t", 1, ("g",))]


def test_assigned_devices_are_not_free():
    reported = [pool(VF, "type-VF", count=3, devices=["v1", "v2", "v3"]), pool(GPU, count=2)]
    pools = FreePools.reported(reported)
    first = pools.choose([wants(VF, count=2), wants(GPU, id="g")])
    assert first is not None
    left = pools.without(first)
    assert chosen(left.choose([wants(VF), wants(GPU, id="g")])) == [("r", 1, ("v3",)), ("g", 1, ())]
    assert left.choose([wants(VF, count=2)]) is None
    # The node stopped to report the pool.
    assert pools.without([AssignedDevices("x", "1234:5678", 4)]).choose([wants(VF, count=3)])


def test_devices_without_known_addresses_are_counted_only():
    reported = [pool(VF, "type-VF", count=3, devices=["v1", "v2", "v3"])]
    pools = FreePools.reported(reported)
    left = pools.without([AssignedDevices("r", pools.pools[0].key, 1)])
    assert chosen(left.choose([wants(VF, count=2)])) == [("r", 2, ())]
    assert left.choose([wants(VF, count=3)]) is None


def functions(*addresses: str) -> list[dict[str, Any]]:
    """Cards, each a physical function with four virtual ones."""
    return [
        each
        for at in addresses
        for each in (pool(NIC, "type-PF", address=at), pool(VF, "type-VF", count=4, address=at))
    ]


WHOLE = NIC | {"dev_type": "type-PF"}


def test_a_physical_function_takes_its_virtual_ones_and_the_other_way_round():
    pools = FreePools.reported(functions(PF_A))
    whole, part = pools.choose([wants(WHOLE)]), pools.choose([wants(VF)])
    assert whole and part
    assert pools.without(whole).choose([wants(VF)]) is None
    assert pools.without(part).choose([wants(WHOLE)]) is None
    assert pools.without(part).choose([wants(VF, count=3)])


def test_physical_and_virtual_functions_of_one_request_are_of_different_cards():
    both = [wants(WHOLE), wants(VF, count=4, id="s")]
    assert FreePools.reported(functions(PF_A)).choose(both) is None
    found = FreePools.reported(functions(PF_A, PF_B)).choose(both)
    assert found is not None
    assert len({each.pool.partition("address=")[2].split()[0] for each in found}) == 2
    assert (
        FreePools.reported(functions(PF_A, PF_B)).choose([wants(WHOLE), wants(VF, count=5, id="s")]) is None
    )


def test_a_search_without_an_end_in_sight_is_given_up():
    cards = functions(*(f"0000:{number:02x}:00.0" for number in range(12)))
    requests = [wants(WHOLE, id=f"w{number}") for number in range(6)] + [wants(VF, count=25)]
    assert FreePools.reported(cards).choose(requests) is None
