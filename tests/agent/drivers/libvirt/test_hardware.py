"""The NUMA cells and PCI devices of a host are fitted by the scheduler's own functions."""

import pytest

from roost.agent.drivers.libvirt.inventory import CpuSets, numa_topology
from roost.agent.drivers.libvirt.pci import DeviceSpec, pci_pools, read_device_spec
from roost.agent.errors import UnusableOptions
from roost.fleet.hardware.cpus import numbers_of
from roost.fleet.hardware.host_topology import decoded
from roost.fleet.hardware.pci_choice import FreePools
from roost.model.spec import PciRequest
from support.libvirt_hosts import devices_of, host_of


def test_cells_have_their_shared_and_dedicated_cpus_their_cores_and_pages() -> None:
    host = host_of("skylake")
    sets = CpuSets(frozenset({0, 8, 16, 24}), host.cpus - {0, 8, 16, 24, 1})
    reported = numa_topology(host, sets.of(host), pinned_by_others={2, 0})
    assert reported is not None
    [first, second] = decoded(reported).cells
    assert numbers_of(first.cpuset) == (0, 16)
    assert numbers_of(first.pcpuset) == (2, 3, 4, 5, 6, 7, 17, 18, 19, 20, 21, 22, 23)
    assert numbers_of(first.pinned) == (2,)
    assert [numbers_of(core) for core in first.siblings][:3] == [(0, 16), (2, 18), (3, 19)]
    assert (17,) in [numbers_of(core) for core in first.siblings]
    assert [(each.size_kb, each.free) for each in first.pages] == [
        (4, 16777216),
        (2048, 32768),
        (1048576, 64),
    ]
    assert (first.memory_mb, first.socket, second.socket) == (196608, 0, 1)


def test_two_cells_of_one_socket_say_so() -> None:
    host = host_of("milan")
    reported = numa_topology(host, CpuSets().of(host))
    assert reported is not None
    assert [cell.socket for cell in decoded(reported).cells] == [0, 0]
    assert [cell.pcpuset for cell in decoded(reported).cells] == [0, 0]


def test_virtual_functions_are_a_pool_of_their_physical_one() -> None:
    specs = [read_device_spec('{"vendor_id": "8086", "address": "0000:3b:*", "physical_network": "public"}')]
    pools = FreePools.reported(pci_pools(devices_of("skylake").pci, specs))
    [pool] = pools.pools
    assert (pool.count, pool.dev_type, pool.address, pool.numa_node) == (2, "type-vf", "0000:3b:00.0", 0)
    assert pool.devices == ("0000:3b:10.0", "0000:3b:10.2")
    request = PciRequest(id="r", count=1, specs=({"vendor_id": "8086", "dev_type": "type-VF"},))
    chosen = pools.choose([request])
    assert chosen is not None
    assert chosen[0].addresses == ("0000:3b:10.0",)


def test_devices_of_guests_of_others_are_not_offered() -> None:
    specs = [DeviceSpec("8086", "37c9"), DeviceSpec("10de")]
    devices = devices_of("skylake").pci
    assert sum(pool.count for pool in FreePools.reported(pci_pools(devices, specs)).pools) == 3
    left = FreePools.reported(pci_pools(devices, specs, used_by_others={"0000:86:00.0"}))
    assert [pool.devices for pool in left.pools] == [("0000:87:00.0",), ("0000:af:00.0",)]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"physical_network": "a"}', '{"vendor_id": 3}'])
def test_what_names_no_devices_is_refused(text: str) -> None:
    with pytest.raises(UnusableOptions, match="device_spec"):
        read_device_spec(text)
