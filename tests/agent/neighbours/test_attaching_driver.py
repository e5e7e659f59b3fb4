"""Guests of a driver are attached to ports and accelerators, and let go of them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.agent.driver_calls import DriverService
from roost.agent.drivers import Attached
from roost.agent.errors import BuildFailed, CannotStopGuests
from roost.agent.host_session import taken_up
from roost.agent.neighbours.accelerators import Accelerators
from roost.agent.neighbours.attaching_driver import AttachingDriver
from roost.agent.neighbours.ports import Ports
from roost.model.assignment import AssignedDevices, Assignment
from roost.model.instance import ASSIGNED, LOST, REBUILDING, STOPPED, Instance
from roost.model.spec import Flavor, RequestedNetwork, RequestSpec
from roost.web.auth.json_service import ServiceAway
from support.cells import instance, selection
from support.neighbour_app import NeighbourApp, neighbour_app

GROUP = "11111111-1111-1111-1111-111111111111"


class Guests:
    """A driver that has guests and nothing else. ``fails``: the next preparation does."""

    def __init__(self) -> None:
        self.there: dict[str, int] = {}
        self.fails = False

    def guests(self) -> dict[str, int]:
        return dict(self.there)

    async def recover(self, instances: object) -> None:
        pass

    async def prepare(self, wanted: Instance) -> None:
        if self.fails:
            self.fails = False
            raise BuildFailed("no room")

    async def start(self, wanted: Instance) -> None:
        self.there[wanted.uuid] = wanted.attempt

    async def destroy(self, uuid: str) -> None:
        self.there.pop(uuid, None)


class Plugging(Guests):
    """A driver that plugs in what its guests are attached to."""

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[str, Attached] = {}

    async def prepare_attached(self, wanted: Instance, attached: Attached) -> None:
        self.told[wanted.uuid] = attached


class Stopping(Guests):
    """A driver that stops its guests."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    @property
    def keeps_disks(self) -> bool:
        return True

    async def stop(self, uuid: str) -> None:
        self.told.append(f"stop {uuid}")

    async def start_again(self, wanted: Instance) -> None:
        self.told.append(f"start {wanted.uuid} again")


class Host:
    """A host with its driver."""

    def __init__(
        self, app: NeighbourApp, name: str, folder: Path, make: Callable[[], Guests] = Guests
    ) -> None:
        self.guests = make()
        self.name = name
        near = (Accelerators(app.api(), name), Ports(app.api(), name))
        (folder / name).mkdir(exist_ok=True)
        self.driver = AttachingDriver(self.guests, near, folder / name)  # type: ignore[arg-type]


def run(folder: Path, test: Callable[[NeighbourApp], Awaitable[None]]) -> None:
    async def running() -> None:
        async with neighbour_app(f"sqlite:///{folder / 'near.db'}") as app:
            await test(app)

    asyncio.run(running())


def wanted(
    *networks: RequestedNetwork,
    host: str = "a",
    attempt: int = 1,
    uuid: str = "i",
    profile: str = "",
    **of: Any,
) -> Instance:
    specs = {"accel:device_profile": profile} if profile else {}
    spec = RequestSpec(
        project_id="project",
        user_id="user",
        flavor=Flavor("f", 1, 1, extra_specs=specs),
        requested_networks=networks,
    )
    chosen = msgspec.structs.replace(selection(host), mappings=of.get("mappings", {}))
    return instance(uuid, host, spec=spec, selection=chosen, attempt=attempt)


def test_port_is_made_for_a_network_and_deleted_with_the_guest(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        network = await app.network("192.0.2.0/29")
        host = Host(app, "a", tmp_path)
        build = wanted(RequestedNetwork(network_id=network))
        await host.driver.prepare(build)
        # An agent that ended in between does it again.
        await Host(app, "a", tmp_path).driver.prepare(build)
        [port] = await app.ports(device_id="i")
        assert (port["binding:host_id"], port["network_id"], len(port["fixed_ips"])) == ("a", network, 1)
        await host.driver.destroy("i")
        assert await app.ports() == []

    run(tmp_path, test)


def test_given_port_is_bound_with_the_providers_of_its_groups_and_unbound(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        request = {"request_groups": [{"id": GROUP, "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 10}}]}
        body = {"network_id": await app.network(), "resource_request": request}
        body["binding:profile"] = {"trusted": True}
        port = await app.made("/v2.0/ports", {"port": body})
        host = Host(app, "a", tmp_path)
        named = RequestedNetwork(port_id=port["id"])
        await host.driver.prepare(wanted(named, mappings={GROUP: ["bandwidth"]}))
        [bound] = await app.ports()
        expected = {"trusted": True, "allocation": {GROUP: "bandwidth"}, "roost_attempt": 1}
        assert (bound["device_id"], bound["binding:host_id"]) == ("i", "a")
        assert bound["binding:profile"] == expected
        with pytest.raises(BuildFailed, match="in use by i") as refused:
            await host.driver.prepare(wanted(named, uuid="other", mappings={GROUP: ["bandwidth"]}))
        assert (refused.value.code, refused.value.retryable) == ("PortInUse", False)
        await host.driver.destroy("other")
        await host.driver.destroy("i")
        [free] = await app.ports()
        assert (free["device_id"], free["binding:host_id"]) == ("", "")
        assert free["binding:profile"] == {"trusted": True}

    run(tmp_path, test)


def test_port_whose_resources_were_not_asked_for_fails_on_every_host(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        request = {"request_groups": [{"id": GROUP, "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 10}}]}
        body = {"network_id": await app.network(), "resource_request": request}
        port = await app.made("/v2.0/ports", {"port": body})
        with pytest.raises(BuildFailed, match=GROUP) as failed:
            await Host(app, "a", tmp_path).driver.prepare(wanted(RequestedNetwork(port_id=port["id"])))
        assert not failed.value.retryable

    run(tmp_path, test)


def test_next_host_takes_the_port_over_and_a_late_attempt_does_not_take_it_back(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        network = await app.network("192.0.2.0/30")
        first, second = Host(app, "a", tmp_path), Host(app, "b", tmp_path)
        asked = RequestedNetwork(network_id=network)
        await first.driver.prepare(wanted(asked))
        [port] = await app.ports()
        # The first host is cut off. There is one address, and the instance keeps it.
        await second.driver.prepare(wanted(asked, host="b", attempt=2))
        [moved] = await app.ports()
        assert (moved["id"], moved["binding:host_id"]) == (port["id"], "b")
        with pytest.raises(BuildFailed, match="later attempt"):
            await first.driver.prepare(wanted(asked))
        await first.driver.destroy("i")
        assert await app.ports() == [moved]
        await second.driver.destroy("i")
        assert await app.ports() == []

    run(tmp_path, test)


def test_no_address_is_a_failure_that_another_host_may_cure(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        network = await app.network("192.0.2.0/30")
        host = Host(app, "a", tmp_path)
        await host.driver.prepare(wanted(RequestedNetwork(network_id=network)))
        with pytest.raises(BuildFailed, match="No more IP addresses available") as failed:
            await host.driver.prepare(wanted(RequestedNetwork(network_id=network), uuid="other"))
        assert (failed.value.code, failed.value.retryable) == ("NoMoreAddresses", True)
        missing = RequestedNetwork(network_id=GROUP)
        with pytest.raises(BuildFailed, match=GROUP) as failed:
            await host.driver.prepare(wanted(missing, uuid="third"))
        assert (failed.value.code, failed.value.retryable) == ("NoSuchPort", False)

    run(tmp_path, test)


def test_accelerators_are_bound_to_the_providers_of_the_claim(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        groups = [{"resources:FPGA": "2"}, {"resources:PGPU": "1"}]
        await app.made("/v2/device_profiles", [{"name": "both", "groups": groups}])
        mappings = {"device_profile_0": ["fpga"], "device_profile_1": ["gpu"]}
        first, second = Host(app, "a", tmp_path), Host(app, "b", tmp_path)
        await first.driver.prepare(wanted(profile="both", mappings=mappings))
        # Again, as after the end of an agent.
        await first.driver.prepare(wanted(profile="both", mappings=mappings))
        bound = await app.arqs(instance="i")
        found = sorted((each["device_rp_uuid"], each["hostname"], each["state"]) for each in bound)
        assert found == [("fpga", "a", "Bound"), ("fpga", "a", "Bound"), ("gpu", "a", "Bound")]
        await second.driver.prepare(wanted(profile="both", mappings=mappings, host="b", attempt=2))
        await first.driver.destroy("i")
        assert {each["hostname"] for each in await app.arqs(instance="i")} == {"b"}
        await second.driver.destroy("i")
        assert await app.arqs() == []
        with pytest.raises(BuildFailed, match="none") as failed:
            await first.driver.prepare(wanted(profile="none"))
        assert (failed.value.code, failed.value.retryable) == ("NoSuchDeviceProfile", False)

    run(tmp_path, test)


def test_what_could_not_be_freed_is_freed_later_also_by_the_next_agent(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        network = await app.network("192.0.2.0/29")
        host = Host(app, "a", tmp_path)
        for uuid in ("i", "j"):
            host.guests.fails = True
            with pytest.raises(BuildFailed, match="no room"):
                await host.driver.prepare(wanted(RequestedNetwork(network_id=network), uuid=uuid))
            app.transport.away = 1
            with pytest.raises(ServiceAway):
                await host.driver.destroy(uuid)
            assert [port["device_id"] for port in await app.ports()] == [uuid]
            if uuid == "i":
                await host.driver.prepare(wanted(uuid="other"))
            else:
                await Host(app, "a", tmp_path).driver.recover([])
            assert await app.ports() == []

    run(tmp_path, test)


def test_guest_without_ports_and_accelerators_asks_nobody(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        host = Host(app, "a", tmp_path)
        await host.driver.prepare(wanted())
        await host.driver.start(wanted())
        await host.driver.destroy("i")
        assert app.transport.asked == []

    run(tmp_path, test)


def test_service_that_does_not_answer_fails_the_build_and_names_itself(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        network = await app.network()
        app.transport.away = 1
        with pytest.raises(BuildFailed, match="the service does not answer: away") as failed:
            await Host(app, "a", tmp_path).driver.prepare(wanted(RequestedNetwork(network_id=network)))
        assert (failed.value.code, failed.value.retryable) == ("NeighbourAway", True)

    run(tmp_path, test)


def test_driver_that_plugs_in_is_told_all_in_order_and_the_service_which_device(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        given = (await app.made("/v2.0/ports", {"port": {"network_id": await app.network()}}))["id"]
        await app.made("/v2/device_profiles", [{"name": "crypto", "groups": [{"resources:FPGA": "1"}]}])
        plugging = Plugging()
        (tmp_path / "a").mkdir()
        near = (Accelerators(app.api(), "a"), Ports(app.api(), "a"))
        driver = AttachingDriver(plugging, near, tmp_path / "a")  # type: ignore[arg-type]
        networks = (RequestedNetwork(network_id=await app.network()), RequestedNetwork(port_id=given))
        asked = wanted(*networks, profile="crypto", mappings={"device_profile_0": ["provider"]})
        device = AssignedDevices(given, "pool", 1, ("0000:3b:10.2",))
        assert asked.selection is not None
        chosen = msgspec.structs.replace(asked.selection, assignment=Assignment("node", (), (device,)))
        await driver.prepare(msgspec.structs.replace(asked, selection=chosen))
        ports = {each["id"]: each for each in await app.ports()}
        told = plugging.told["i"]
        assert [(each.id, each.address) for each in told.ports] == [
            *((uuid, None) for uuid in ports if uuid != given),
            (given, "0000:3b:10.2"),
        ]
        assert {each.mac for each in told.ports} == {each["mac_address"] for each in ports.values()}
        assert {each.kind for each in told.ports} == {"other"}
        assert ports[given]["binding:profile"] == {"roost_attempt": 1, "pci_slot": "0000:3b:10.2"}
        [arq] = await app.arqs()
        assert [(each.id, each.kind, each.handle) for each in told.devices] == [
            (arq["uuid"], arq["attach_handle_type"], arq["attach_handle_info"])
        ]
        await driver.destroy("i")
        [port] = await app.ports()
        assert (port["id"], port["binding:profile"]) == (given, {})
        # Nothing to plug in: it is told that.
        await driver.prepare(wanted(uuid="plain"))
        assert plugging.told["plain"] == Attached()

    run(tmp_path, test)


def test_stopped_guest_keeps_its_ports(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        stopping = Stopping()
        (tmp_path / "a").mkdir()
        driver = AttachingDriver(stopping, (Ports(app.api(), "a"),), tmp_path / "a")  # type: ignore[arg-type]
        guest = wanted(RequestedNetwork(network_id=await app.network()))
        await driver.prepare(guest)
        await driver.start(guest)
        before = await app.ports(device_id="i")
        await driver.stop("i")
        await driver.start_again(guest)
        assert stopping.told == ["stop i", "start i again"]
        assert await app.ports(device_id="i") == before
        for call in (plain := Host(app, "b", tmp_path).driver).stop("i"), plain.start_again(guest):
            with pytest.raises(CannotStopGuests, match="the driver Guests cannot stop guests"):
                await call

    run(tmp_path, test)


async def _moving(app: NeighbourApp, folder: Path) -> tuple[Host, Host, Instance, Instance, str]:
    """Two hosts, an instance that runs on the first, its attempt on the second, and the id of its port."""
    asked = RequestedNetwork(network_id=await app.network("192.0.2.0/29"))
    source, target = Host(app, "a", folder), Host(app, "b", folder, Stopping)
    first = wanted(asked)
    await source.driver.prepare(first)
    await source.driver.start(first)
    [port] = await app.ports()
    moved = msgspec.structs.replace(wanted(asked, host="b", attempt=2), move="m")
    return source, target, first, moved, port["id"]


def test_a_port_of_an_instance_that_could_not_be_rebuilt_is_deleted_with_it(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        network = RequestedNetwork(network_id=await app.network())
        host = Host(app, "a", tmp_path)
        await host.driver.prepare(wanted(network))
        await host.driver.start(wanted(network))
        before = await app.ports()
        await host.driver.destroy_with_ports("i", "none")
        host.guests.fails = True
        with pytest.raises(BuildFailed, match="no room"):
            await host.driver.prepare(wanted(network, attempt=2))
        await host.driver.destroy_with_ports("i", "none")
        assert [each["id"] for each in await app.ports()] == [each["id"] for each in before]
        await host.driver.destroy_with_ports("i", "all")
        assert await app.ports() == []

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("there", "keeps"),
    [
        ({"state": ASSIGNED}, False),
        ({"state": ASSIGNED, "move": "m"}, True),
        ({"state": REBUILDING}, True),
        ({"state": LOST}, True),
        ({"state": STOPPED}, True),
    ],
    ids=["first build", "moves", "is rebuilt", "lost", "stopped"],
)
def test_a_restart_of_the_agent_takes_no_port_from_an_instance_that_had_a_guest(
    tmp_path: Path, there: dict[str, Any], keeps: bool
) -> None:
    async def test(app: NeighbourApp) -> None:
        build = wanted(RequestedNetwork(network_id=await app.network()))
        await Host(app, "a", tmp_path).driver.prepare(build)
        now = msgspec.structs.replace(build, **there)
        await DriverService(Host(app, "a", tmp_path).driver).recover(taken_up((now,)))
        assert len(await app.ports()) == keeps

    run(tmp_path, test)


def test_a_port_follows_its_instance_when_the_guest_starts_on_the_target(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        source, target, _, moved, port = await _moving(app, tmp_path)
        await target.driver.prepare(moved)
        [there] = await app.ports()
        assert (there["id"], there["binding:host_id"]) == (port, "a")
        await target.driver.start(moved)
        await source.driver.destroy_with_ports("i", "none")
        [there] = await app.ports()
        assert (there["id"], there["binding:host_id"]) == (port, "b")
        await target.driver.destroy_with_ports("i", "all")
        assert await app.ports() == []

    run(tmp_path, test)


def test_a_port_of_a_shelved_instance_stays_with_its_address_and_is_bound_to_no_host(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        source, target, first, _, port = await _moving(app, tmp_path)
        [before] = await app.ports()
        await source.driver.destroy_with_ports("i", "unbound")
        [there] = await app.ports()
        assert (there["id"], there["binding:host_id"], there["device_id"]) == (port, "", "i")
        assert there["fixed_ips"] == before["fixed_ips"]
        # The next agent of the host finds nothing to take from it.
        await Host(app, "a", tmp_path).driver.recover([])
        assert [each["id"] for each in await app.ports()] == [port]

        asked = first.spec.requested_networks if first.spec is not None else ()
        again = wanted(*asked, host="b", attempt=2)
        target.guests.fails = True
        with pytest.raises(BuildFailed, match="no room"):
            await target.driver.prepare(again)
        await target.driver.destroy_with_ports("i", "unbound")
        with pytest.raises(BuildFailed, match="a later attempt has port"):
            await source.driver.prepare(first)
        await target.driver.prepare(msgspec.structs.replace(again, attempt=3))
        [there] = await app.ports()
        assert (there["id"], there["binding:host_id"]) == (port, "b")

    run(tmp_path, test)


def test_a_host_that_never_had_a_shelved_instance_deletes_its_ports(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        source, target, _, _, port = await _moving(app, tmp_path)
        await source.driver.destroy_with_ports("i", "unbound")
        await target.driver.destroy_with_ports("i", "all")
        assert [each["id"] for each in await app.ports()] == [port]
        await target.driver.destroy_with_ports("i", "every")
        assert await app.ports() == []

    run(tmp_path, test)


def test_a_guest_that_is_started_again_has_its_port_back_and_a_late_attempt_does_not_take_it(
    tmp_path: Path,
) -> None:
    async def test(app: NeighbourApp) -> None:
        _, target, first, moved, port = await _moving(app, tmp_path)
        source = Host(app, "a", tmp_path, Stopping)
        for _ in range(2):
            await target.driver.prepare(moved)
            await target.driver.start(moved)
            await target.driver.destroy_with_ports("i", "none")
            # Without the word of the cell it is the later attempt's.
            with pytest.raises(BuildFailed, match="later attempt"):
                await source.driver.start_with_ports(first, 0)
            for _ in range(2):
                await source.driver.start_with_ports(first, moved.attempt)
            [there] = await app.ports()
            assert (there["id"], there["binding:host_id"]) == (port, "a")
            await target.driver.prepare(moved)
            with pytest.raises(BuildFailed, match="later attempt"):
                await target.driver.start(moved)
            moved = msgspec.structs.replace(moved, attempt=moved.attempt + 1)
        # An instance that ends has no port, wherever it is bound.
        await target.driver.destroy_with_ports("i", "all")
        assert await app.ports() == []

    run(tmp_path, test)


def test_accelerators_are_asked_for_anew_on_the_target_before_the_source_is_stopped(tmp_path: Path) -> None:
    async def test(app: NeighbourApp) -> None:
        await app.made("/v2/device_profiles", [{"name": "one", "groups": [{"resources:FPGA": "1"}]}])
        source, target = Host(app, "a", tmp_path), Host(app, "b", tmp_path)
        first = wanted(profile="one", mappings={"device_profile_0": ["fpga-a"]})
        await source.driver.prepare(first)
        moved = wanted(profile="one", mappings={"device_profile_0": ["fpga-b"]}, host="b", attempt=2)
        await target.driver.prepare(msgspec.structs.replace(moved, move="m"))
        bound = sorted((each["hostname"], each["device_rp_uuid"]) for each in await app.arqs(instance="i"))
        assert bound == [("a", "fpga-a"), ("b", "fpga-b")]
        await source.driver.destroy_with_ports("i", "none")
        assert [each["hostname"] for each in await app.arqs(instance="i")] == ["b"]

    run(tmp_path, test)


def test_a_driver_that_plugs_in_is_told_the_ports_of_a_guest_that_moves_when_it_starts_it(
    tmp_path: Path,
) -> None:
    async def test(app: NeighbourApp) -> None:
        _, _, _, moved, port = await _moving(app, tmp_path)
        plugging = Plugging()
        (tmp_path / "c").mkdir()
        driver = AttachingDriver(plugging, (Ports(app.api(), "c"),), tmp_path / "c")  # type: ignore[arg-type]
        await driver.prepare(moved)
        assert plugging.told["i"] == Attached()
        await driver.start(moved)
        assert [each.id for each in plugging.told["i"].ports] == [port]

    run(tmp_path, test)
