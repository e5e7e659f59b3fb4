"""The NUMA cells and PCI devices of simulated hosts are what reports of nodes may have."""

import pytest

from roost.agent.drivers.simulated_profiles import numa_topology, pci_device_pools
from roost.fleet.hardware.cpus import numbers_of
from roost.fleet.hardware.host_topology import decoded
from roost.fleet.hardware.pci_pools import pools_of


@pytest.mark.parametrize(("cells", "vcpus"), [(1, 1), (2, 8), (3, 8), (4, 64)])
def test_cpus_and_memory_are_divided_among_the_cells(cells: int, vcpus: int) -> None:
    reported = numa_topology(cells, vcpus, 9_001)
    assert reported is not None
    found = decoded(reported).cells
    assert sorted(cpu for cell in found for cpu in numbers_of(cell.pcpuset)) == list(range(vcpus))
    assert {len(numbers_of(cell.pcpuset)) for cell in found} <= {vcpus // cells, vcpus // cells + 1}
    for cell in found:
        assert cell.memory_mb == 9_001 // cells
        assert [pages.size_kb for pages in cell.pages] == [4, 2_048]
        assert sum(pages.total_kb for pages in cell.pages) == cell.memory_mb * 1024


def test_devices_are_dealt_out_to_the_cells() -> None:
    pools = pools_of(pci_device_pools(5, 2))
    assert [pool.numa_node for pool in pools] == [0, 1, 0, 1, 0]
    assert len({pool.address for pool in pools}) == 5
    assert [pool.numa_node for pool in pools_of(pci_device_pools(1, 0))] == [None]
    assert (numa_topology(0, 4, 1024), pci_device_pools(0, 0)) == (None, ())
