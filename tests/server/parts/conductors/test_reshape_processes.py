"""Hosts that are reshaped while their instances run: conductors and agents as processes, on PostgreSQL."""

import signal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.profiled_cloud import ProfiledCloud
from support.programs import Program
from support.waiting import wait_for

HOST = "h-0001"
COMPUTE = {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1}


class Case(NamedTuple):
    """A host that changes from one profile to another. The extra specs of an instance that is there before
    and of one that comes after, and what each holds then, by the suffix of the provider."""

    profiles: tuple[str, str]
    before: dict[str, str]
    after: dict[str, str]
    held: dict[str, dict[str, int]]
    new: dict[str, dict[str, int]]


GPU = "pci_0000_3b_00_0"
CASES = {
    "vgpu": Case(
        ("vgpu-flat", "vgpu-libvirt"),
        {"resources:VGPU": "1"},
        {"resources:VGPU": "1"},
        {"": COMPUTE, GPU: {"VGPU": 1}},
        {"": COMPUTE, GPU: {"VGPU": 1}},
    ),
    "pcpu": Case(
        ("flat", "dedicated-cpus"),
        {},
        {"hw:cpu_policy": "dedicated"},
        {"": {"PCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1}},
        {"": {"PCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1}},
    ),
    "numa": Case(
        ("flat", "numa-dedicated"),
        {},
        {"hw:cpu_policy": "dedicated"},
        {"": {"DISK_GB": 1}, "numa": {"VCPU": 2, "MEMORY_MB": 512}},
        {"": {"DISK_GB": 1}, "numa": {"PCPU": 2, "MEMORY_MB": 512}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_host_is_reshaped_under_its_instances_and_its_agent_may_be_killed(
    tmp_path: Path, servers: Any, case: str
) -> None:
    change = CASES[case]
    numa_model = "trees" if case == "numa" else "objects"
    with (
        ProfiledCloud(
            tmp_path, servers.running("postgresql"), scheduler=f"numa_model = {numa_model}"
        ) as cloud,
        Program(tmp_path, "conductor", config=cloud.config) as conductor,
        Program(tmp_path, "cell-conductor", "cell1", config=cloud.config, name="cell") as cell,
    ):
        ask = conductor.client
        assert ask.post("/v1/cells", json={"name": "cell1"}).is_success
        [made] = ask.post("/v1/hosts", json={"cell": "cell1", "hosts": [HOST]}).json()["hosts"]
        (tmp_path / "tokens").write_text(f"{HOST} {made['token']}\n")

        def states() -> dict[str, str]:
            return {each["uuid"]: each["state"] for each in ask.get("/v1/instances").json()["instances"]}

        def build(extra_specs: dict[str, str]) -> str:
            flavor = {"name": "f", "vcpus": 2, "memory_mb": 512, "disk_gb": 1, "extra_specs": extra_specs}
            while True:
                [uuid] = ask.post("/v1/instances", json={"flavor": flavor, "count": 1}).json()["instances"]
                wait_for(lambda of=uuid: states().get(of) in ("active", "error"))
                if states()[uuid] == "active":
                    return uuid
                # The scheduler looks for new hosts from time to time, and has not seen this one yet.
                ask.delete(f"/v1/instances/{uuid}")

        flat, _ = cloud.agent(cell.url, "h-", change.profiles[0])
        wait_for(lambda: ask.get("/v1/hosts").json()["hosts"][0]["state"] == "up")
        old = build(change.before)
        before = cloud.held(old, HOST)
        assert set(before) == {""}
        flat.kill()
        flat.wait()
        for _ in range(3):
            # Wherever it is by then: the next one goes on.
            agent, log = cloud.agent(cell.url, "h-", change.profiles[1])
            wait_for(lambda of=log: of.read_text() or cloud.held(old, HOST) != before)
            agent.kill()
            agent.wait()
        agent, log = cloud.agent(cell.url, "h-", change.profiles[1])
        wait_for(lambda: cloud.held(old, HOST) == change.held)
        new = build(change.after)
        assert cloud.held(new, HOST) == change.new
        guests = {path.name for path in (tmp_path / "state").glob("*/guests/*")}
        assert guests == {old, new} == set(states())
        assert cloud.differences() == []
        for uuid in (old, new):
            ask.delete(f"/v1/instances/{uuid}")
        wait_for(lambda: not states() and not cloud.held(old, HOST) and not cloud.held(new, HOST))
        agent.send_signal(signal.SIGTERM)
        assert (agent.wait(), conductor.end(), cell.end()) == (0, 0, 0)
        assert cloud.differences() == []
        said = "".join(path.read_text() for path in tmp_path.glob("*.log"))
        assert "Traceback" not in said
