"""`roost instance migrate` and `roost move`, as commands beside a system whose hosts are simulated."""

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.processes import RoostUp, run_roost
from support.waiting import wait_for

Run = Callable[..., subprocess.CompletedProcess[str]]

SERVED = (
    "requested",
    "preparing",
    "stopping",
    "stopped",
    "starting",
    "switched",
    "cleaning",
    "freeing",
    "done",
)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RoostUp]:
    with RoostUp(tmp_path_factory.mktemp("up") / "data", ("--hosts", "3", "--cells", "1")) as server:
        server.wait_until_up()
        yield server


@pytest.fixture
def run(up: RoostUp, monkeypatch: pytest.MonkeyPatch) -> Run:
    # A line of a table is not folded then.
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        return run_roost(*command, "--url", f"http://127.0.0.1:{up.port}")

    return run


def test_a_maintenance_is_planned(run: Run, instance: str) -> None:
    host = read(run("instance", "show", instance, "--json"))["host"]
    plan = read(run("maintenance", "plan", "--all", "--json"))
    assert [len(wave["hosts"]) for wave in plan["waves"]] == [1, 1, 1] and not plan["left_out"]
    # Without the room for one more host, two of the three are empty together.
    wide = read(run("maintenance", "plan", "--all", "--no-reserve", "--json"))
    assert [len(wave["hosts"]) for wave in wide["waves"]] == [2, 1]
    assert read(run("maintenance", "plan", "--cell", "cell1", "--json")) == plan
    shown = run("maintenance", "plan", host, "--moves")
    assert shown.returncode == 0, shown.stderr
    assert instance in shown.stdout and host in shown.stdout
    refused = run("maintenance", "plan", "moon")
    assert refused.returncode == 1 and "no host 'moon' is known" in refused.stderr
    nothing = run("maintenance", "plan")
    assert nothing.returncode == 2 and "no hosts are selected" in nothing.stderr


@pytest.fixture
def instance(run: Run) -> Iterator[str]:
    """The uuid of an instance that runs."""
    done = run("instance", "create", "--vcpus", "1", "--wait")
    uuid, state, _ = done.stdout.splitlines()[-1].split()
    assert state == "active", done.stdout
    yield uuid
    assert run("instance", "delete", uuid).returncode == 0


def read(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def host_of(run: Run, instance: str) -> str:
    return str(read(run("instance", "show", instance, "--json"))["host"])


def state_of(run: Run, move: str) -> str:
    return str(read(run("move", "show", move, "--json"))["state"])


def test_an_instance_is_migrated_and_its_steps_are_told_as_they_happen(run: Run, instance: str) -> None:
    before = host_of(run, instance)
    done = run("instance", "migrate", instance, "--wait")
    assert done.returncode == 0, done.stderr
    after = host_of(run, instance)
    assert after != before
    told = [line.split("  ") for line in done.stdout.splitlines()]
    assert [line[1] for line in told] == [*SERVED]
    assert [line[2:] for line in told if len(line) > 2] == [[after]]
    [move] = read(run("move", "list", "--instance", instance, "--json"))["moves"]
    assert (move["source_host"], move["target_host"], move["state"]) == (before, after, "done")
    assert run("move", "list", "--under-way", "--quiet").stdout == ""
    line = next(line for line in run("move", "list").stdout.splitlines() if instance in line)
    assert all(word in line for word in (move["uuid"], "migrate", "done", before, after))
    shown = run("move", "show", instance).stdout
    assert all(word in shown for word in (move["uuid"], "preparing", after)), shown
    history = run("instance", "history", instance).stdout
    heading = next(line for line in history.splitlines() if " migrate: success" in line)
    assert "by admin" in heading
    event = next(line for line in history.splitlines() if "move 2" in line)
    assert "moved" in event and after in event
    kinds = [
        each["kind"] for each in json.loads(run("events", "--instance", instance, "--json").stdout)["events"]
    ]
    assert [each for each in kinds if "mov" in each] == ["instance_moving", "instance_moved"]


def test_a_move_that_waits_is_reverted_or_confirmed(run: Run, instance: str) -> None:
    before = host_of(run, instance)
    for word, end in (("revert", "reverted"), ("confirm", "done")):
        done = run("instance", "migrate", instance, "--no-confirm", "--wait")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1].endswith("  switched")
        moved = host_of(run, instance)
        assert moved != before
        late = run("move", "abort", instance)
        assert (late.returncode, "revert the move, or confirm it" in late.stderr) == (1, True)
        assert read(run("move", word, instance, "--json"))["instance"] == instance
        wait_for(lambda end=end: state_of(run, instance) == end)
        assert host_of(run, instance) == (before if word == "revert" else moved)
    assert " revert: success" in run("instance", "history", instance).stdout


def test_an_instance_is_resized_and_goes_back_to_its_size(run: Run, instance: str) -> None:
    def vcpus() -> int:
        claim = read(run("instance", "show", instance, "--json"))["claim"]
        return sum(amounts.get("VCPU", 0) for amounts in claim.values())

    done = run("instance", "resize", instance, "--vcpus", "2", "--memory-mb", "0", "--wait")
    assert (done.returncode, done.stdout.splitlines()[-1][-8:]) == (0, "switched"), done.stderr
    assert vcpus() == 2
    assert run("move", "revert", instance).returncode == 0
    wait_for(lambda: state_of(run, instance) == "reverted")
    assert vcpus() == 1


def test_an_instance_is_resized_on_its_host_and_keeps_its_size_there(run: Run, instance: str) -> None:
    host = host_of(run, instance)
    size = ("--vcpus", "2", "--memory-mb", "0", "--in-place", "--host", host)
    done = run("instance", "resize", instance, *size, "--wait")
    assert (done.returncode, done.stdout.splitlines()[-1][-8:]) == (0, "switched"), done.stderr
    assert run("move", "confirm", instance).returncode == 0
    wait_for(lambda: state_of(run, instance) == "done")
    shown = read(run("instance", "show", instance, "--json"))
    assert (shown["host"], shown["state"]) == (host, "active")
    assert sum(amounts.get("VCPU", 0) for amounts in shown["claim"].values()) == 2


def test_a_host_that_lives_is_not_evacuated(run: Run, instance: str) -> None:
    host, words = host_of(run, instance), "has not been silent for long enough"
    refused = run("instance", "evacuate", instance, "--evidence", "fire")
    assert (refused.returncode, words in refused.stderr) == (1, True), refused.stderr
    refused = run("host", "evacuate", host, "--evidence", "fire")
    assert refused.returncode == 1
    assert f"instance {instance} is not evacuated: the agent of host {host} {words}" in refused.stdout


def test_an_instance_that_stays_is_told_with_the_reason(run: Run, instance: str) -> None:
    before = host_of(run, instance)
    others = {"host-0001", "host-0002", "host-0003"} - {before}
    try:
        for host in others:
            assert run("host", "disable", host, "--reason", "new memory").returncode == 0
        done = run("instance", "migrate", instance, "--wait")
        assert done.returncode == 1, done.stdout
        assert "the instance has not moved: No valid host was found" in done.stderr
        assert host_of(run, instance) == before
        refused = run("instance", "migrate", instance, "--host", min(others))
        assert (refused.returncode, f"{min(others)!r} is disabled: new memory" in refused.stderr) == (1, True)
    finally:
        for host in others:
            run("host", "enable", host)
    for host, words in (("nowhere", "is not in cell"), (before, f"is on host {before} already")):
        refused = run("instance", "migrate", instance, "--host", host)
        assert (refused.returncode, words in refused.stderr) == (1, True), refused.stderr


def test_a_move_that_is_not_there_is_told(run: Run, instance: str) -> None:
    nobody = "00000000-0000-4000-8000-000000000000"
    for named, words in ((instance[:8], f"instance {instance} has no move"), (nobody, f"no move {nobody}")):
        refused = run("move", "show", named)
        assert (refused.returncode, words in refused.stderr) == (1, True), refused.stderr


def test_a_request_that_is_sent_again_begins_one_move(up: RoostUp, run: Run, instance: str) -> None:
    with up.client() as client:
        headers = {"Idempotency-Key": "once"}
        path = f"/v1/instances/{instance}/migrate"
        first = client.post(path, json={}, headers=headers)
        assert first.status_code == 202, first.text
        wait_for(lambda: state_of(run, first.json()["uuid"]) == "done")
        again = client.post(path, json={}, headers=headers)
        assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")
        moves = client.get("/v1/moves", params={"instance": instance}).json()["moves"]
        assert [each["uuid"] for each in moves] == [first.json()["uuid"]]


def test_a_maintenance_is_started_paused_resumed_and_ended_by_hand(run: Run, instance: str) -> None:
    host = read(run("instance", "show", instance, "--json"))["host"]
    begun = read(run("maintenance", "start", host, "--no-reserve", "--json"))["maintenance"]
    assert (begun["state"], begun["left"]) == ("running", 1)
    again = run("maintenance", "start", host)
    assert again.returncode == 1 and f"is in maintenance {begun['uuid']}" in again.stderr
    paused = run("maintenance", "pause")
    assert paused.returncode == 0 and "paused, wave" in paused.stdout, paused.stderr
    assert read(run("maintenance", "start", "--json"))["maintenance"]["state"] == "running"

    def in_work() -> bool:
        return read(run("maintenance", "status", "--json"))["maintenance"]["hosts"] == {"in-work": 1}

    wait_for(in_work)
    shown = run("maintenance", "status")
    assert shown.returncode == 0 and host in shown.stdout and "waits for" in shown.stdout, shown.stdout
    done = run("maintenance", "done", host)
    assert done.returncode == 0 and f"host {host} is given back; 1 host is left" in done.stdout
    over = read(run("maintenance", "status", begun["uuid"], "--wait", "--json"))["maintenance"]
    assert (over["state"], over["hosts"], over["wave"]) == ("done", {"returned": 1}, 1)
    assert read(run("instance", "show", instance, "--json"))["host"] != host


def test_a_maintenance_that_is_cancelled_names_the_hosts_that_it_left_out(run: Run, instance: str) -> None:
    host = read(run("instance", "show", instance, "--json"))["host"]
    read(run("maintenance", "start", host, "--no-reserve", "--json"))
    wait_for(lambda: read(run("maintenance", "status", "--json"))["maintenance"]["wave"] == 1)
    cancelled = run("maintenance", "cancel", "--wait")
    assert cancelled.returncode == 0 and "the maintenance was cancelled" in cancelled.stdout
    assert run("maintenance", "status").returncode == 1


def test_words_on_maintenances_that_there_are_not_are_refused(run: Run) -> None:
    for command, said in (
        (("pause",), "no maintenance is under way"),
        (("cancel",), "no maintenance is under way"),
        (("start",), "no maintenance is under way"),
        (("start", "--keep-going"), "no hosts are selected"),
        (("start", "host-0001", "--maintenance", "one"), "it goes with no hosts"),
        (("done", "host-0001"), "is in no maintenance that is under way"),
    ):
        refused = run("maintenance", *command)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
