"""What a request names is looked up in the network and accelerator services."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.conductor.instances.types import WantedInstances
from roost.conductor.neighbours import Neighbours
from roost.web.errors import BadRequest, Conflict, Unavailable
from support.neighbour_app import NeighbourApp, neighbour_app

GROUP = "11111111-1111-1111-1111-111111111111"
BANDWIDTH = {"NET_BW_EGR_KILOBIT_PER_SEC": 10}


def run(folder: Path, test: Callable[[NeighbourApp, Neighbours], Awaitable[None]]) -> None:
    async def running() -> None:
        async with neighbour_app(f"sqlite:///{folder / 'near.db'}") as app:
            await test(app, Neighbours(app.api("the network service"), app.api("the accelerator service")))

    asyncio.run(running())


def wanted(*networks: dict[str, Any], profile: str = "") -> WantedInstances:
    specs = {"accel:device_profile": profile} if profile else {}
    flavor = {"vcpus": 1, "memory_mb": 1, "extra_specs": specs}
    return msgspec.convert({"flavor": flavor, "networks": networks}, WantedInstances)


def everybody(project: str) -> bool:
    return True


def test_resources_of_a_port_come_from_its_service(tmp_path: Path) -> None:
    async def test(app: NeighbourApp, neighbours: Neighbours) -> None:
        group = {"id": GROUP, "resources": BANDWIDTH, "required": ["CUSTOM_PHYSNET_A"]}
        body = {"network_id": await app.network(), "resource_request": {"request_groups": [group]}}
        port = await app.made("/v2.0/ports", {"port": body})
        found, groups = await neighbours.completed(wanted({"port_id": port["id"]}), everybody)
        [request] = found.port_groups
        assert (request.suffix, request.resources, groups) == (GROUP, BANDWIDTH, ())
        assert found.networks[0].network_id == body["network_id"]
        # What the request says itself stays.
        own = {"request_groups": [{"id": "mine", "resources": {"CUSTOM_A": 1}}]}
        said = wanted({"port_id": port["id"], "resource_request": own})
        found, _ = await neighbours.completed(said, everybody)
        assert [each.suffix for each in found.port_groups] == ["mine"]

    run(tmp_path, test)


def test_ports_of_others_are_as_if_they_were_not_there(tmp_path: Path) -> None:
    async def test(app: NeighbourApp, neighbours: Neighbours) -> None:
        body = {"network_id": await app.network(), "project_id": "theirs"}
        port = (await app.made("/v2.0/ports", {"port": body}))["id"]
        with pytest.raises(BadRequest, match=f"there is no port {port}"):
            await neighbours.completed(wanted({"port_id": port}), {"ours"}.__contains__)
        with pytest.raises(BadRequest, match=f"there is no port {GROUP}"):
            await neighbours.completed(wanted({"port_id": GROUP}), everybody)
        with pytest.raises(BadRequest, match=r"there is no port \.\./networks"):
            await neighbours.completed(wanted({"port_id": "../networks"}), everybody)
        await app.http.put(f"/v2.0/ports/{port}", json={"port": {"device_id": "other"}})
        with pytest.raises(Conflict, match="in use by other"):
            await neighbours.completed(wanted({"port_id": port}), everybody)

    run(tmp_path, test)


def test_device_profiles_become_groups(tmp_path: Path) -> None:
    async def test(app: NeighbourApp, neighbours: Neighbours) -> None:
        groups = [{"resources:FPGA": "2", "trait:CUSTOM_A": "required"}, {"resources:PGPU": "1"}]
        await app.made("/v2/device_profiles", [{"name": "both", "groups": groups}])
        _, found = await neighbours.completed(wanted(profile="both"), everybody)
        shown = [(each.suffix, each.resources) for each in found]
        assert shown == [("device_profile_0", {"FPGA": 2}), ("device_profile_1", {"PGPU": 1})]
        with pytest.raises(BadRequest, match="'none' is none of the device profiles"):
            await neighbours.completed(wanted(profile="none"), everybody)

    run(tmp_path, test)


def test_service_that_is_away_refuses_the_request_and_one_that_is_not_needed_is_not_asked(
    tmp_path: Path,
) -> None:
    async def test(app: NeighbourApp, neighbours: Neighbours) -> None:
        await neighbours.completed(wanted({"network_id": "n"}), everybody)
        assert app.transport.asked == []
        for request, named in ((wanted({"port_id": GROUP}), "network"), (wanted(profile="p"), "accelerator")):
            app.transport.away = 1
            with pytest.raises(Unavailable, match=f"the {named} service does not answer"):
                await neighbours.completed(request, everybody)

    run(tmp_path, test)
