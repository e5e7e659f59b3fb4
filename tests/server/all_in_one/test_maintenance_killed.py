"""A maintenance goes on after `roost up`, with all of its conductors, was killed in its middle."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from support.processes import RoostUp, run_roost
from support.waiting import wait_for

HOSTS, INSTANCES = 4, 8
UP = ("--hosts", str(HOSTS), "--cells", "1", "--host-vcpus", "8", "--build-seconds", "0.2")

HOOK = '''
"""Notes the host and the number of instances that are there."""
import json, sys, time, urllib.request
url, notes, host, cell, maintenance = sys.argv[1:]
address = f"{url}/v1/instances?host={host}&all_projects=true"
request = urllib.request.Request(address, headers={"X-Auth-Token": "admin"})
while True:
    try:
        there = json.load(urllib.request.urlopen(request))["instances"]
        break
    except OSError:
        # It is killed, or does not serve yet.
        time.sleep(0.1)
note = {"host": host, "there": len(there), "cell": cell, "maintenance": maintenance}
with open(notes, "a") as file:
    file.write(json.dumps(note) + "\\n")
# The first call is under way when the conductors are killed.
time.sleep(30.0 if sum(1 for _ in open(notes)) == 1 else 0.1)
print("the firmware of", host, "is new")
'''


def notes_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_maintenance_goes_on_when_all_conductors_are_killed_in_its_middle(tmp_path: Path) -> None:
    hook, notes, conf = tmp_path / "hook.py", tmp_path / "notes", tmp_path / "roost.conf"
    hook.write_text(HOOK)
    server = RoostUp(tmp_path / "data", UP)
    port = server.port
    command = f"{sys.executable} {hook} http://127.0.0.1:{port} {notes}"
    conf.write_text(f"[maintenance]\nhook_command = {command}\n[conductor]\nmoves_per_cell = 4\n")
    server.kill()
    arguments = (*UP, "--config-file", str(conf))

    def seen_then_killed(seen: Callable[[httpx.Client], bool], start: bool = False) -> str:
        with RoostUp(tmp_path / "data", arguments, port) as server:
            server.wait_until_up()
            with server.client() as http:
                if start:
                    begin(http)
                wait_for(lambda: seen(http))
                [shown] = http.get("/v1/maintenances").json()["maintenances"]
            server.kill()
            assert "Traceback" not in server.stderr, server.stderr
        uuid: str = shown["uuid"]
        return uuid

    def begin(http: httpx.Client) -> None:
        body = {"flavor": {"vcpus": 1, "memory_mb": 512}, "count": INSTANCES}
        assert http.post("/v1/instances", json=body).status_code == 202
        wait_for(lambda: len(active(http)) == INSTANCES)
        hosts = [each["host"] for each in http.get("/v1/hosts").json()["hosts"]]
        answer = http.post("/v1/maintenances", json={"hosts": hosts, "most_hosts": 2})
        assert answer.status_code == 202, answer.text

    def state(http: httpx.Client, name: str) -> bool:
        return bool(http.get("/v1/maintenances").json()["maintenances"][0]["hosts"].get(name))

    uuid = seen_then_killed(lambda http: state(http, "emptying"), start=True)
    seen_then_killed(lambda http: notes.exists())
    with RoostUp(tmp_path / "data", arguments, port) as server:
        server.wait_until_up()
        url = f"http://127.0.0.1:{port}"
        ended = run_roost("maintenance", "status", uuid, "--wait", "--json", "--url", url)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        shown = json.loads(ended.stdout)["maintenance"]
        assert (shown["state"], shown["hosts"]) == ("done", {"returned": HOSTS})
        with server.client() as http:
            hosts = http.get("/v1/hosts").json()["hosts"]
            assert [each["enabled"] for each in hosts] == [True] * HOSTS
            assert len(active(http)) == INSTANCES
            of_hosts = http.get(f"/v1/maintenances/{uuid}/hosts").json()["hosts"]
        assert {each["hook"]["status"] for each in of_hosts} == {0}
        assert [each["calls"] for each in of_hosts if each["host"] == notes_of(notes)[0]["host"]] == [2]
        assert all(each["hook"]["output"] == f"the firmware of {each['host']} is new" for each in of_hosts)
        server.stop()
        assert "Traceback" not in server.stderr, server.stderr
    called = notes_of(notes)
    assert {each["host"] for each in called} == {each["host"] for each in of_hosts}
    assert {(each["there"], each["maintenance"], each["cell"]) for each in called} == {(0, uuid, "cell1")}


def active(http: httpx.Client) -> list[dict[str, Any]]:
    found = http.get("/v1/instances", params={"all_projects": True}).json()["instances"]
    return [each for each in found if each["state"] == "active" and each["move"] is None]
