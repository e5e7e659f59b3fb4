"""Each profile of simulated hosts, from nothing to an instance on its providers and back."""

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from roost.compute.drivers.simulated_profiles import profile_names, read_profile
from roost.compute.tree_provider import provider_uuid
from roost.model.errors import OperatorError
from roost.model.instance import ACTIVE
from roost.model.spec import Flavor
from roost.system import Layout, LayoutHost, System
from support.systems import differences, opened_system, states, wanted

HOST = "host"


class Case(NamedTuple):
    """The extra specs of a flavor, and what an instance of it holds, by the suffix of the provider."""

    extra_specs: dict[str, str]
    holds: dict[str, dict[str, int]]


COMPUTE = {"VCPU": 2, "MEMORY_MB": 64, "DISK_GB": 1}
NO_COMPUTE = {f"resources:{name}": "0" for name in COMPUTE}

CASES = {
    "flat": Case({}, {"": COMPUTE}),
    "numa-sriov": Case(
        {
            "resources_NET:SRIOV_NET_VF": "1",
            "trait_NET:CUSTOM_PHYSNET_PRIVATE": "required",
            "resources_CPU:VCPU": "2",
            "resources_CPU:MEMORY_MB": "64",
            "resources:VCPU": "0",
            "resources:MEMORY_MB": "0",
            "group_policy": "none",
        },
        {"": {"DISK_GB": 1}, "numa": {"VCPU": 2, "MEMORY_MB": 64}, "pf-86-00-0": {"SRIOV_NET_VF": 1}},
    ),
    "vgpu-libvirt": Case(
        {"resources:CUSTOM_VGPU_LARGE": "2"}, {"": COMPUTE, "pci_0000_86_00_0": {"CUSTOM_VGPU_LARGE": 2}}
    ),
    "vgpu-xenapi": Case({"resources:VGPU": "1"}, {"": COMPUTE, "gpu-group-1": {"VGPU": 1}}),
    "fpga": Case(
        {"resources_FPGA:FPGA": "1", "trait_FPGA:CUSTOM_FPGA_FUNCTION_CRYPTO": "required"},
        {"": COMPUTE, "fpga-86-00-0": {"FPGA": 1}},
    ),
    "bare-metal": Case(
        {**NO_COMPUTE, "resources:CUSTOM_BAREMETAL_GPU": "1", "trait:CUSTOM_NVLINK": "required"},
        {"node": {"CUSTOM_BAREMETAL_GPU": 1}},
    ),
    "persistent-memory": Case({"hw:pmem": "4GB"}, {"": {**COMPUTE, "CUSTOM_PMEM_NAMESPACE_4GB": 1}}),
    "memory-encryption": Case(
        {
            "resources_SEV:MEM_ENCRYPTION_CONTEXT": "1",
            "trait_SEV:HW_CPU_X86_AMD_SEV_ES": "required",
        },
        {"": COMPUTE, "amd-sev-es": {"MEM_ENCRYPTION_CONTEXT": 1}},
    ),
}


def layout(profile: str, nodes: int = 3) -> Layout:
    """One host of a profile, with at most ``nodes`` of each kind."""
    host = read_profile(profile).host(HOST)
    few = tuple(msgspec.structs.replace(each, count=min(each.count, nodes)) for each in host.nodes)
    return Layout({"cell1": (LayoutHost(msgspec.structs.replace(host, nodes=few)),)})


async def held(system: System, instance: str) -> dict[str, dict[str, int]]:
    """What an instance holds, by the suffix of the provider; a bare metal node is called node."""
    there = await system.placement.allocations_of(instance)
    assert there is not None
    found = {}
    for uuid, amounts in there.allocations.items():
        provider = await system.placement.provider(uuid)
        assert provider is not None
        name = "node" if provider.name == uuid else provider.name.removeprefix(HOST).removeprefix("-")
        found["numa" if name.startswith("numa") else name] = dict(amounts)
    return found


@pytest.mark.parametrize("profile", CASES)
def test_instance_runs_on_the_providers_of_a_profile(tmp_path: Path, profile: str) -> None:
    async def run() -> None:
        request = wanted("i")
        flavor = Flavor("asks", 2, 64, 1, extra_specs=CASES[profile].extra_specs)
        request = msgspec.structs.replace(request, spec=msgspec.structs.replace(request.spec, flavor=flavor))
        async with opened_system(tmp_path, layout(profile)) as system:
            await system.super_conductor.accept(request)
            await system.settle()
            assert await states(system) == {"i-0": ACTIVE}
            assert await held(system, "i-0") == CASES[profile].holds
            await system.super_conductor.delete(["i-0"])
            await system.settle()
            assert await system.placement.allocations_of("i-0") is None
        assert await differences(tmp_path) == []

    asyncio.run(run())


def test_every_profile_has_a_case() -> None:
    assert profile_names() == sorted(CASES)


@pytest.mark.parametrize("nodes", [6, pytest.param(1000, marks=pytest.mark.nightly)])
def test_a_bare_metal_service_has_its_nodes_and_no_provider_of_its_own(tmp_path: Path, nodes: int) -> None:
    async def run() -> None:
        async with opened_system(tmp_path, layout("bare-metal", 3 if nodes == 6 else nodes)) as system:
            await system.settle()
            reports = await system.cells["cell1"].nodes()
            assert len({each.node for each in reports}) == nodes
            assert {each.host for each in reports} == {HOST}
            assert all(system.table.index_of_node(each.node) is not None for each in reports)
            assert await system.placement.tree(provider_uuid(HOST)) == []

    asyncio.run(run())


@pytest.mark.parametrize("name", ["none", "{folder}/none.toml", "{folder}/wrong.toml"])
def test_profile_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "wrong.toml").write_text("inventory.VCPU = 4")
    name = name.format(folder=tmp_path)
    with pytest.raises(OperatorError, match=f"profile {name}"):
        read_profile(name)


def test_profile_of_a_file_of_the_operator_is_read(tmp_path: Path) -> None:
    path: Any = tmp_path / "own.toml"
    path.write_text('traits = ["CUSTOM_A"]\ninventory.VCPU = { total = 4 }')
    host = read_profile(str(path)).host("a", ("CUSTOM_B",))
    assert (host.inventory["VCPU"].total, host.traits) == (4, ("CUSTOM_A", "CUSTOM_B"))
