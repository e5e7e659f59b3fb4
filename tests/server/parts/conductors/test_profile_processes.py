"""Hosts of every profile with their agents as processes: from nothing to an instance and to its deletion."""

import re
import signal
from pathlib import Path
from typing import Any

from roost.agent.drivers import simulated_profiles
from support.profiled_cloud import ProfiledCloud
from support.profiles import CASES, STORAGE
from support.programs import Program
from support.waiting import wait_for

PROFILES = Path(simulated_profiles.__file__).with_name("profiles")

TRIES = 20
"""So often an instance is asked for until the scheduler has seen all hosts."""


def few_nodes(folder: Path) -> str:
    """A file with the profile bare-metal, with two nodes of each kind."""
    path = folder / "bare-metal.toml"
    text = (PROFILES / "bare-metal.toml").read_text()
    path.write_text(re.sub(r"count = \d+", "count = 2", text))
    return str(path)


def test_instances_run_on_hosts_of_every_profile(tmp_path: Path, servers: Any) -> None:
    prefixes = {f"{profile}-": profile for profile in CASES}
    hosts = {f"{prefix}0001": profile for prefix, profile in prefixes.items()}
    with (
        ProfiledCloud(
            tmp_path, servers.running("postgresql"), conductor=f"sharing_providers = {STORAGE}"
        ) as cloud,
        Program(tmp_path, "conductor", config=cloud.config) as conductor,
        Program(tmp_path, "cell-conductor", "cell1", config=cloud.config, name="cell") as cell,
    ):
        ask = conductor.client
        assert ask.post("/v1/cells", json={"name": "cell1"}).is_success
        made = ask.post("/v1/hosts", json={"cell": "cell1", "hosts": [*hosts]}).json()["hosts"]
        (tmp_path / "tokens").write_text("".join(f"{each['host']} {each['token']}\n" for each in made))
        agents = []
        for prefix, profile in prefixes.items():
            described = few_nodes(tmp_path) if profile == "bare-metal" else profile
            agents.append(cloud.agent(cell.url, prefix, described)[0])
        wait_for(lambda: {each["state"] for each in ask.get("/v1/hosts").json()["hosts"]} == {"up"})

        def states() -> dict[str, str]:
            return {each["uuid"]: each["state"] for each in ask.get("/v1/instances").json()["instances"]}

        running: dict[str, str] = {}
        for _ in range(TRIES):
            left = [host for host in hosts if host not in running]
            asked = {}
            for host in left:
                specs = CASES[hosts[host]].extra_specs
                flavor = {"vcpus": 2, "memory_mb": 64, "disk_gb": 1, "extra_specs": specs}
                # A host that is forced has nothing of a sharing provider: placement's rule of in_tree.
                wanted = {"flavor": flavor, "ignore_hosts": sorted(hosts.keys() - {host})}
                [asked[host]] = ask.post("/v1/instances", json=wanted).json()["instances"]
            wait_for(lambda of=asked: {states().get(uuid) for uuid in of.values()} <= {"active", "error"})
            there = states()
            running |= {host: uuid for host, uuid in asked.items() if there[uuid] == "active"}
            # The scheduler looks for new hosts from time to time, and has not seen all of them yet.
            for uuid in asked.values():
                if there[uuid] == "error":
                    ask.delete(f"/v1/instances/{uuid}")
        assert running.keys() == hosts.keys()
        for host, uuid in running.items():
            assert cloud.held(uuid, host) == CASES[hosts[host]].holds, host
        guests = {path.name for path in (tmp_path / "state").glob("*/guests/*")}
        assert guests == set(running.values())
        assert cloud.differences() == []
        for uuid in running.values():
            ask.delete(f"/v1/instances/{uuid}")
        wait_for(lambda: not states())
        wait_for(lambda: not any(cloud.held(uuid, host) for host, uuid in running.items()))
        assert list((tmp_path / "state").glob("*/guests/*")) == []
        for agent in agents:
            agent.send_signal(signal.SIGTERM)
        assert [agent.wait() for agent in agents] == [0] * len(agents)
        assert (conductor.end(), cell.end()) == (0, 0)
    assert cloud.differences() == []
    assert "Traceback" not in "".join(path.read_text() for path in tmp_path.glob("*.log"))
