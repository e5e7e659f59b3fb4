"""`roost agent --driver libvirt` as a process, on the test hypervisor of libvirt."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from roost.agent.drivers.libvirt.connection import LibvirtConnection
from support.forked import Forked
from support.libvirt_daemon import NEEDS_DAEMON, opened_daemon
from support.libvirt_hosts import needs_libvirt
from support.programs import Program, write_config
from support.serving import ENVIRONMENT
from support.waiting import wait_for

needs_libvirt()

SMALL = {"name": "small", "vcpus": 2, "memory_mb": 512, "disk_gb": 1}
PINNED = {**SMALL, "name": "pinned", "extra_specs": {"hw:cpu_policy": "dedicated"}}
AGENT = "driver = libvirt\npoll_seconds = 1\nretry_seconds = 0.1\nreport_seconds = 1"
AS_SERVICE = {"openstack-api-version": "placement 1.39", "x-roles": "admin,service"}
FILTERS = "enabled_filters = ComputeFilter, NUMATopologyFilter"


class Cloud:
    """Placement, a conductor, a cell, and the agent of the host ``virt``, in processes."""

    def __init__(self, folder: Path, config: Path, programs: tuple[Program, Program, Program]) -> None:
        self._folder, self._config = folder, config
        self.placement, self.conductor, self.cell = programs
        self.log = folder / "agent.log"
        self.disks = folder / "state" / "instances"
        ask = self.conductor.client
        assert ask.post("/v1/cells", json={"name": "cell1"}).is_success
        [made] = ask.post("/v1/hosts", json={"cell": "cell1", "hosts": ["virt"]}).json()["hosts"]
        (folder / "tokens").write_text(f"virt {made['token']}\n")
        self.begin_agent()
        found = self.placement.client.get("/resource_providers?name=virt").json()["resource_providers"]
        self.provider: str = found[0]["uuid"]

    def begin_agent(self) -> None:
        """Start the agent, and wait until it has reported."""
        before = self._starts()
        where = ("--endpoint", self.cell.url, "--host", "virt", "--token-file", self._folder / "tokens")
        options = (*where, "--state-dir", self._folder / "state", "--config-file", self._config)
        with self.log.open("ab") as file:
            self.agent = Forked("agent", *options, env=ENVIRONMENT, stderr=file)
        wait_for(lambda: self._starts() > before)

    def instances(self) -> list[dict[str, Any]]:
        """All instances."""
        found: list[dict[str, Any]] = self.conductor.client.get("/v1/instances").json()["instances"]
        return found

    def build(self, flavor: dict[str, object]) -> str:
        """Build an instance; returns its uuid."""
        while True:
            body = {"flavor": flavor, "count": 1}
            [uuid] = self.conductor.client.post("/v1/instances", json=body).json()["instances"]
            wait_for(lambda: self.instances() and self.instances()[0]["state"] in ("active", "error"))
            if self.instances()[0]["state"] == "active":
                return str(uuid)
            # The scheduler looks for new hosts from time to time, and has not seen this one yet.
            self.delete(uuid)
            wait_for(lambda: not self.instances())

    def delete(self, uuid: str) -> None:
        """Ask for an instance's deletion."""
        assert self.conductor.client.delete(f"/v1/instances/{uuid}").status_code == 202

    def held(self, uuid: str) -> dict[str, Any]:
        """What an instance has claimed, by provider."""
        found = self.placement.client.get(f"/allocations/{uuid}").json()["allocations"]
        return {provider: each["resources"] for provider, each in found.items()}

    def make_all_cpus_shared(self, uuid: str) -> None:
        """Have the host and an instance as an agent tells them that knows no PCPU."""
        ask = self.placement.client
        path = f"/resource_providers/{self.provider}/inventories"
        now = ask.get(path).json()
        records = {name: each for name, each in now["inventories"].items() if name != "PCPU"}
        records["VCPU"]["total"] += now["inventories"]["PCPU"]["total"]
        claim = ask.get(f"/allocations/{uuid}", headers=AS_SERVICE).json()
        resources = claim["allocations"][self.provider]["resources"]
        resources["VCPU"] = resources.pop("PCPU")
        generation = now["resource_provider_generation"]
        inventories = {"inventories": records, "resource_provider_generation": generation}
        body = {"inventories": {self.provider: inventories}, "allocations": {uuid: claim}}
        assert ask.post("/reshaper", json=body, headers=AS_SERVICE).status_code == 204

    def end(self) -> None:
        """End all in order."""
        self.agent.terminate()
        ended = [self.agent.wait(), self.conductor.end(), self.cell.end(), self.placement.end()]
        assert ended == [0, 0, 0, 0]
        assert "Traceback" not in self.log.read_text()

    def _starts(self) -> int:
        return self.log.read_text().count("roost: agent of virt") if self.log.exists() else 0


@contextmanager
def opened_cloud(folder: Path, libvirt: str) -> Iterator[Cloud]:
    """Start everything, and end it in order."""
    config = write_config(folder, libvirt=libvirt, agent=AGENT, filter_scheduler=FILTERS)
    with (
        Program(folder, "serve", config=config) as placement,
        Program(folder, "conductor", config=config) as conductor,
        Program(folder, "cell-conductor", "cell1", config=config, name="cell") as cell,
    ):
        cloud = Cloud(folder, config, (placement, conductor, cell))
        try:
            yield cloud
            cloud.end()
        finally:
            if cloud.agent.poll() is None:
                cloud.agent.kill()


def test_an_instance_is_built_on_a_host_with_libvirt_and_deleted(tmp_path: Path) -> None:
    options = "uri = test:///default\ncount_other_guests = false\nrefresh_seconds = 0.1"
    with opened_cloud(tmp_path, options) as cloud:
        path = f"/resource_providers/{cloud.provider}/inventories"
        inventories = cloud.placement.client.get(path).json()["inventories"]
        totals = {name: each["total"] for name, each in inventories.items() if name != "DISK_GB"}
        assert totals == {"VCPU": 16, "MEMORY_MB": 3072}
        uuid = cloud.build(SMALL)
        assert (cloud.disks / f"roost-{uuid}" / "disk").stat().st_size == 1024**3
        assert cloud.held(uuid) == {cloud.provider: {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1}}
        cloud.delete(uuid)
        wait_for(lambda: not cloud.instances())
        assert list(cloud.disks.iterdir()) == []
        assert cloud.held(uuid) == {}


@pytest.mark.nightly
@NEEDS_DAEMON[0]
@NEEDS_DAEMON[1]
def test_a_pinned_guest_outlives_its_agent_and_is_reshaped_and_destroyed_by_the_next(tmp_path: Path) -> None:
    with opened_daemon() as daemon:
        watching = LibvirtConnection(daemon.uri, 20.0)
        sets = "cpu_shared_set = 0-7\ncpu_dedicated_set = 8-11"
        options = f"uri = {daemon.uri}\ncount_other_guests = false\nrefresh_seconds = 0.1\n{sets}"

        def domains() -> dict[str, str]:
            return watching.call_now(
                lambda opened: {each.name(): each.XMLDesc() for each in opened.listAllDomains()}
            )

        assert domains().keys() == {"test"}
        with opened_cloud(tmp_path, options) as cloud:
            uuid = cloud.build(PINNED)
            assert cloud.held(uuid) == {cloud.provider: {"PCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1}}
            domain = ElementTree.fromstring(domains()[f"roost-{uuid}"])
            pins = {each.get("cpuset") for each in domain.findall("cputune/vcpupin")}
            assert len(pins) == 2
            assert pins <= {"8", "9", "10", "11"}
            cloud.agent.kill()
            cloud.agent.wait()
            assert domains().keys() == {"test", f"roost-{uuid}"}
            cloud.make_all_cpus_shared(uuid)
            assert cloud.held(uuid)[cloud.provider].keys() == {"VCPU", "MEMORY_MB", "DISK_GB"}
            cloud.begin_agent()
            wait_for(lambda: cloud.held(uuid)[cloud.provider].keys() == {"PCPU", "MEMORY_MB", "DISK_GB"})
            assert domains().keys() == {"test", f"roost-{uuid}"}
            cloud.delete(uuid)
            wait_for(lambda: not cloud.instances())
            assert domains().keys() == {"test"}
            assert cloud.held(uuid) == {}
        watching.close()


def test_an_agent_whose_hypervisor_is_away_says_so_and_ends(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("virt secret\n")
    config = write_config(tmp_path, libvirt="uri = qemu+unix:///system?socket=/no/socket")
    log = tmp_path / "agent.log"
    where = ("--endpoint", "http://127.0.0.1:1", "--host", "virt", "--token-file", tmp_path / "tokens")
    with log.open("ab") as file:
        options = (*where, "--state-dir", tmp_path / "state", "--config-file", config, "--driver", "libvirt")
        agent = Forked("agent", *options, env=ENVIRONMENT, stderr=file)
    assert agent.wait() == 2
    assert "the driver libvirt cannot begin: qemu+unix:///system?socket=/no/socket cannot be opened" in (
        log.read_text()
    )
