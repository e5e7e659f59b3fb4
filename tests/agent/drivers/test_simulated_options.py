"""The options of group `simulated` say what the hosts of an agent have."""

from pathlib import Path

import pytest

from roost.agent.drivers.simulated_options import simulated_drivers
from roost.agent.provider_tree import ProviderTree
from roost.model.errors import OperatorError
from roost.process.option_source import Setting, Source


def source(*settings: str) -> Source:
    return Source((), tuple(Setting.parse(f"simulated.{each}") for each in settings))


def test_a_host_has_numa_cells_devices_gpus_and_traits(tmp_path: Path) -> None:
    chosen = source("vcpus=6", "numa_cells=2", "pci_devices=3", "gpus=2", "vgpus_of_gpu=4", "traits=CUSTOM_A")
    driver = simulated_drivers(chosen)("a", tmp_path)
    hardware = driver.hardware()
    assert hardware is not None and hardware.numa_topology is not None
    assert [each["cpuset"] for each in hardware.numa_topology["cells"]] == [[0, 1, 2], [3, 4, 5]]
    assert [each["numa_node"] for each in hardware.pci_device_pools] == [0, 1, 0]
    tree = ProviderTree()
    tree.new_root("a", "uuid-of-a")
    driver.update_provider_tree(tree, "a")
    assert tree.data("a").traits == {"CUSTOM_A"}
    for name in ("a-gpu1", "a-gpu2"):
        assert tree.data(name).inventory["VGPU"]["total"] == 4


def test_without_options_a_host_has_none_of_it(tmp_path: Path) -> None:
    driver = simulated_drivers(source())("a", tmp_path)
    assert driver.hardware() is None
    tree = ProviderTree()
    tree.new_root("a", "uuid-of-a")
    driver.update_provider_tree(tree, "a")
    assert tree.get_provider_uuids() == ["uuid-of-a"]


def test_more_cells_than_cpus_are_refused() -> None:
    with pytest.raises(OperatorError, match="numa_cells 5 is more than vcpus 4"):
        simulated_drivers(source("vcpus=4", "numa_cells=5"))
