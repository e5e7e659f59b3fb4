"""Ports and accelerators with conductors, agents and `roost neighbours` as processes."""

import signal
from pathlib import Path
from typing import Any

import httpx

from support.profiled_cloud import ProfiledCloud
from support.programs import Program
from support.waiting import wait_for

GROUPS = [{"resources:FPGA": "1", "trait:CUSTOM_FPGA_FUNCTION_CRYPTO": "required"}]
PROFILE = {"name": "crypto", "groups": GROUPS}
GROUP = "11111111-1111-1111-1111-111111111111"
FLAVOR = {"vcpus": 1, "memory_mb": 64, "disk_gb": 1}


def near(program: Program) -> list[str]:
    """The options of agents that reach the service."""
    return [
        f"{group}.{option}={value}"
        for group in ("neutron", "cyborg")
        for option, value in (("auth_type", "admin_token"), ("endpoint", program.url), ("token", "admin"))
    ]


def made(client: httpx.Client, path: str, body: object) -> Any:
    answer = client.post(path, json=body)
    assert answer.is_success, answer.text
    found = answer.json()
    return next(iter(found.values())) if len(found) == 1 else found


def test_guests_have_their_ports_and_accelerators_and_give_them_back(tmp_path: Path, servers: Any) -> None:
    hosts = ("sound-0001", "weak-0001")
    database = f"sqlite:///{tmp_path / 'neighbours.db'}"
    with (
        ProfiledCloud(tmp_path, servers.running("postgresql")) as cloud,
        Program(
            tmp_path, "neighbours", "--database", database, config=cloud.config, name="neighbours"
        ) as neighbours,
        Program(tmp_path, "conductor", config=cloud.config, settings=near(neighbours)) as conductor,
        Program(tmp_path, "cell-conductor", "cell1", config=cloud.config, name="cell") as cell,
    ):
        ask, ports = conductor.client, neighbours.client
        assert ask.post("/v1/cells", json={"name": "cell1"}).is_success
        given = ask.post("/v1/hosts", json={"cell": "cell1", "hosts": [*hosts]}).json()["hosts"]
        (tmp_path / "tokens").write_text("".join(f"{each['host']} {each['token']}\n" for each in given))
        options = ("simulated.profile=fpga", *near(neighbours))
        agents = [
            cloud.agent_with(cell.url, "sound-", *options)[0],
            cloud.agent_with(cell.url, "weak-", *options, "agent.start_seconds=60")[0],
        ]
        wait_for(lambda: {each["state"] for each in ask.get("/v1/hosts").json()["hosts"]} == {"up"})
        made(ports, "/v2/device_profiles", [PROFILE])
        network = made(ports, "/v2.0/networks", {"network": {}})["id"]
        # One address, and as many guests as there are hosts want one.
        pool = [{"start": "192.0.2.9", "end": "192.0.2.9"}]
        subnet = {"network_id": network, "cidr": "192.0.2.0/24", "allocation_pools": pool}
        made(ports, "/v2.0/subnets", {"subnet": subnet})

        def shown(uuid: str) -> dict[str, Any]:
            return ask.get(f"/v1/instances/{uuid}").json()

        def asked(**wanted: object) -> dict[str, Any]:
            body = {"flavor": FLAVOR, **wanted}
            [uuid] = ask.post("/v1/instances", json=body).json()["instances"]
            wait_for(lambda: shown(uuid)["state"] in ("active", "error"))
            return shown(uuid)

        def until_active(**wanted: object) -> dict[str, Any]:
            """The scheduler sees new hosts, and their traits, after some seconds."""
            for _ in range(30):
                if (found := asked(**wanted))["state"] == "active":
                    return found
                ask.delete(f"/v1/instances/{found['uuid']}")
            raise AssertionError(found)

        specs = {"flavor": {**FLAVOR, "extra_specs": {"accel:device_profile": "crypto"}}}
        first = until_active(**specs, networks=[{"network_id": network}])
        [arq] = ports.get("/v2/accelerator_requests", params={"instance": first["uuid"]}).json()["arqs"]
        assert (arq["state"], arq["hostname"]) == ("Bound", first["host"])
        # It is bound to the provider that was claimed.
        assert first["claim"][arq["device_rp_uuid"]] == {"FPGA": 1}
        [port] = ports.get("/v2.0/ports").json()["ports"]
        assert (port["device_id"], port["binding:host_id"]) == (first["uuid"], first["host"])

        # What a port needs is known to the network service alone.
        group = {"id": GROUP, "resources": {"FPGA": 1}, "required": ["CUSTOM_FPGA_FUNCTION_GZIP"]}
        other = made(ports, "/v2.0/networks", {"network": {}})["id"]
        body = {"network_id": other, "resource_request": {"request_groups": [group]}}
        given = made(ports, "/v2.0/ports", {"port": body})["id"]
        on_port = until_active(networks=[{"port_id": given}])
        bound = ports.get(f"/v2.0/ports/{given}").json()["port"]
        provider = bound["binding:profile"]["allocation"][GROUP]
        assert on_port["claim"][provider] == {"FPGA": 1}
        refused = ask.post("/v1/instances", json={"flavor": FLAVOR, "networks": [{"port_id": given}]})
        assert (refused.status_code, on_port["uuid"] in refused.text) == (409, True)
        ask.delete(f"/v1/instances/{on_port['uuid']}")
        wait_for(lambda: ports.get(f"/v2.0/ports/{given}").json()["port"]["device_id"] == "")
        assert ports.delete(f"/v2.0/ports/{given}").status_code == 204

        # No address is left: each host is tried, and the reason is there.
        seen = [until_active(ignore_hosts=[each for each in hosts if each != host]) for host in hosts]
        assert [each["host"] for each in seen] == [*hosts]
        second = asked(networks=[{"network_id": network}])
        assert second["state"] == "error"
        tried = [(each["code"], each["host"]) for each in second["attempts"] if each["attempt"]]
        assert sorted(tried) == [("NoMoreAddresses", host) for host in hosts]
        assert "No more IP addresses available" in second["attempts"][0]["reason"]
        # The address of the first is free when it ends, and so is its accelerator.
        ask.delete(f"/v1/instances/{first['uuid']}")
        wait_for(lambda: ports.get("/v2.0/ports").json()["ports"] == [])
        wait_for(lambda: ports.get("/v2/accelerator_requests").json()["arqs"] == [])
        third = asked(networks=[{"network_id": network}])
        assert third["state"] == "active"
        for each in (*seen, second, third):
            ask.delete(f"/v1/instances/{each['uuid']}")
        wait_for(lambda: ask.get("/v1/instances").json()["instances"] == [])
        wait_for(lambda: ports.get("/v2.0/ports").json()["ports"] == [])
        for agent in agents:
            agent.send_signal(signal.SIGTERM)
        assert [agent.wait() for agent in agents] == [0, 0]
        assert [each.end() for each in (conductor, cell, neighbours)] == [0, 0, 0]
    assert cloud.differences() == []
    assert "Traceback" not in "".join(path.read_text() for path in tmp_path.glob("*.log"))
