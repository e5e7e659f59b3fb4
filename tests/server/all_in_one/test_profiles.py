"""Each profile of simulated hosts, from nothing to an instance on its providers and back."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.agent.drivers.simulated_profiles import profile_names, read_profile
from roost.model.errors import OperatorError
from roost.model.instance import ACTIVE
from roost.model.names import provider_uuid
from roost.model.spec import Flavor
from roost.server.all_in_one.layout import LayoutHost, SystemLayout
from roost.server.all_in_one.system import System
from support.profiles import CASES, STORAGE
from support.systems import differences, opened_system, states, wanted

HOST = "host"


def layout(profile: str, nodes: int = 3) -> SystemLayout:
    """One host of a profile, with at most ``nodes`` of each kind."""
    host = read_profile(profile).host(HOST)
    few = tuple(msgspec.structs.replace(each, count=min(each.count, nodes)) for each in host.nodes)
    return SystemLayout({"cell1": (LayoutHost(msgspec.structs.replace(host, nodes=few)),)})


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
        async with opened_system(tmp_path, layout(profile), sharing_providers=(STORAGE,)) as system:
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
