"""Bare metal from nothing to instances, to cleaning and to free nodes again: conductors, an agent with the
driver redfish and BMCs as processes, with the agent killed in between."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from roost.cli.redfish import redfish
from roost.ledger.tables import inventories, resource_providers
from support.forked import Forked
from support.profiled_cloud import ProfiledCloud
from support.programs import Program
from support.redfish_emulator import Emulator, system_of
from support.waiting import wait_for

HOST = "metal-0001"
KIND = "CUSTOM_BAREMETAL_GOLD"
FOREIGN = 1
"""A machine that somebody else has switched on."""
OPTIONS = (
    "agent.driver=redfish",
    "agent.report_seconds=0.5",
    "redfish.look_seconds=0.2",
    "redfish.grace_seconds=0",
    "redfish.power_poll_seconds=0.1",
    # Of all machines behind one BMC, which answers one question at a time.
    "redfish.power_seconds=900",
)
FLAVOR = {
    "vcpus": 1,
    "memory_mb": 1,
    "extra_specs": {f"resources:{KIND}": "1", "resources:VCPU": "0", "resources:MEMORY_MB": "0"},
}


class Metal:
    """A cloud with one host of bare metal nodes."""

    def __init__(self, folder: Path, cloud: ProfiledCloud, bmc: Emulator, machines: int) -> None:
        self.cloud, self.bmc = cloud, bmc
        self.state = folder / "state" / HOST
        self._nodes = folder / "nodes.toml"
        nodes = [
            f'[[bmcs.nodes]]\nname = "n{number}"\nsystem = "{system_of(number)}"\nresource_class = "{KIND}"\n'
            for number in range(machines)
        ]
        cleaning = 'cleaning = { boot = { from = "pxe" }, seconds = 1200 }\n'
        self._nodes.write_text(f'{cleaning}[[bmcs]]\nendpoint = "{bmc.url}"\n{"".join(nodes)}')

    def agent(self, endpoint: str) -> Forked:
        """Start the agent."""
        return self.cloud.agent_with(endpoint, "metal-", *OPTIONS, f"redfish.nodes={self._nodes}")[0]

    def told(self) -> dict[str, dict[str, Any]]:
        """What `roost redfish nodes` tells, by name; nothing before the agent has looked first."""
        shown = CliRunner().invoke(redfish, ["nodes", "--state-dir", str(self.state), "--json"])
        nodes = json.loads(shown.stdout)["nodes"] if shown.exit_code == 0 else []
        return {each["name"]: each for each in nodes}

    def phases(self) -> dict[str, str]:
        return {name: each["phase"] for name, each in self.told().items()}

    def number_of(self, instance: str) -> int:
        """The machine of an instance."""
        [name] = [name for name, each in self.told().items() if each.get("instance") == instance]
        return int(name[1:])

    def reserved(self) -> dict[str, int]:
        """What is reserved of each node in placement."""
        engine = sa.create_engine(self.cloud.urls["api"], poolclass=sa.NullPool)
        with engine.connect() as connection:
            query = sa.select(resource_providers.c.uuid, inventories.c.reserved).join(
                inventories, inventories.c.provider_id == resource_providers.c.id
            )
            rows = connection.execute(query).all()
            by_uuid = {row.uuid: row.reserved for row in rows}
        return {name: by_uuid[each["uuid"]] for name, each in self.told().items() if each["uuid"] in by_uuid}


@pytest.mark.parametrize("machines", [4, pytest.param(100, marks=pytest.mark.nightly)])
def test_bare_metal_from_nothing_to_instances_and_back(tmp_path: Path, servers: Any, machines: int) -> None:
    (tmp_path / "bmc").mkdir()
    with (
        ProfiledCloud(tmp_path, servers.running("postgresql")) as cloud,
        Program(tmp_path, "conductor", config=cloud.config) as conductor,
        Program(tmp_path, "cell-conductor", "cell1", config=cloud.config, name="cell") as cell,
        Emulator(tmp_path / "bmc", machines, on=frozenset({FOREIGN}), delay=1.0) as bmc,
    ):
        ask = conductor.client
        assert ask.post("/v1/cells", json={"name": "cell1"}).is_success
        [made] = ask.post("/v1/hosts", json={"cell": "cell1", "hosts": [HOST]}).json()["hosts"]
        (tmp_path / "tokens").write_text(f"{HOST} {made['token']}\n")
        metal = Metal(tmp_path, cloud, bmc, machines)
        agent = metal.agent(cell.url)
        free = {f"n{number}": 0 if number != FOREIGN else 1 for number in range(machines)}
        wait_for(lambda: metal.reserved() == free)

        def states() -> dict[str, str]:
            return {each["uuid"]: each["state"] for each in ask.get("/v1/instances").json()["instances"]}

        def is_building() -> bool:
            return any(phase in ("building", "starting") for phase in metal.phases().values())

        def have_ended(instances: list[str]) -> bool:
            there = states()
            return all(there.get(uuid) in ("active", "error") for uuid in instances)

        def run_on_every_node() -> list[str]:
            """An instance for each node that is free, with the agent killed while they are built."""
            nonlocal agent
            running: list[str] = []
            for _ in range(20):
                missing = machines - 1 - len(running)
                asked = {"flavor": FLAVOR, "count": missing, "min_count": 1}
                new = ask.post("/v1/instances", json=asked).json()["instances"]
                wait_for(lambda of=new: is_building() or have_ended(of))
                agent.kill()
                agent.wait()
                agent = metal.agent(cell.url)
                wait_for(lambda of=new: have_ended(of), 600)
                running += [uuid for uuid in new if states()[uuid] == "active"]
                # The scheduler looks for new nodes from time to time, and has not seen all of them yet.
                for uuid in new:
                    if states()[uuid] == "error":
                        ask.delete(f"/v1/instances/{uuid}")
                if len(running) == machines - 1:
                    return running
            raise AssertionError(f"{states()} on {metal.told()}")

        instances = run_on_every_node()
        # The agent tells of its nodes after each look at them all.
        wait_for(lambda: {each.get("instance") for each in metal.told().values()} == {*instances, None})
        assert len({metal.number_of(uuid) for uuid in instances}) == machines - 1
        assert all(bmc.is_on(number) for number in range(machines))
        assert metal.phases()[f"n{FOREIGN}"] == "reserved"
        assert cloud.differences() == []

        for uuid in instances:
            ask.delete(f"/v1/instances/{uuid}")
        wait_for(lambda: not states(), 600)
        cleaned = [number for number in range(machines) if number != FOREIGN]
        wait_for(lambda: all(bmc.is_on(number) for number in cleaned))
        wait_for(lambda: {metal.phases()[f"n{number}"] for number in cleaned} == {"cleaning"}, 600)
        assert set(metal.reserved().values()) == {1}
        # Killed while the images clean; then they are done.
        agent.kill()
        agent.wait()
        agent = metal.agent(cell.url)
        begun = dict.fromkeys(cleaned, False)

        def has_cleaned() -> bool:
            phases = metal.phases()
            for number in cleaned:
                if phases[f"n{number}"] == "cleaning" and bmc.is_on(number):
                    if begun[number]:
                        bmc.switch(number, False)
                    begun[number] = not begun[number]
            return metal.reserved() == free

        wait_for(has_cleaned, 600)
        assert bmc.is_on(FOREIGN), "whose machine it is, is not the agent's business"
        wait_for(lambda: set(metal.phases().values()) == {"free", "reserved"})
        agent.send_signal(signal.SIGTERM)
        assert (agent.wait(), conductor.end(), cell.end()) == (0, 0, 0)
    assert cloud.differences() == []
    assert "Traceback" not in "".join(path.read_text() for path in tmp_path.glob("*.log"))
