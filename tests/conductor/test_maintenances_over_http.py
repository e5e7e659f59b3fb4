"""Maintenances over HTTP: started, shown, paused, resumed, cancelled; hosts that are worked on by hand."""

from typing import Any

import httpx

from support.conductor_api import ADMIN, TOKEN, detail
from support.moving_cloud import Cloud, playing

PATH = "/v1/maintenances"


async def started(cloud: Cloud, *hosts: str, **more: Any) -> str:
    answer = await cloud.ask("POST", PATH, {"hosts": [*hosts], "reserve": False, **more})
    assert answer.status_code == 202, answer.text
    uuid: str = answer.json()["uuid"]
    return uuid


async def shown(cloud: Cloud, uuid: str) -> dict[str, Any]:
    answer = await cloud.ask("GET", f"{PATH}/{uuid}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def hosts_of(cloud: Cloud, uuid: str, query: str = "") -> dict[str, dict[str, Any]]:
    answer = await cloud.ask("GET", f"{PATH}/{uuid}/hosts{query}")
    assert answer.status_code == 200, answer.text
    return {each["host"]: each for each in answer.json()["hosts"]}


async def said(cloud: Cloud, uuid: str, word: str) -> httpx.Response:
    return await cloud.ask("POST", f"{PATH}/{uuid}/{word}")


async def emptied(cloud: Cloud, uuid: str) -> str:
    """Play the hosts until the instance has left its host, which is in work then; returns that."""
    before = await cloud.shown()
    for _ in range(3):
        await cloud.now.super.step()
    [move] = (await cloud.ask("GET", f"/v1/moves?instance={cloud.instance}")).json()["moves"]
    await cloud.run_on_target(move["uuid"], before["attempt"])
    await cloud.destroy(before["attempt"], before["host"])
    for _ in range(3):
        await cloud.now.super.step()
    assert (await hosts_of(cloud, uuid))[before["host"]]["state"] == "in-work"
    host: str = before["host"]
    return host


def test_a_host_is_emptied_worked_on_by_hand_and_given_back(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        host = (await cloud.shown())["host"]
        uuid = await started(cloud, host)
        begun = await shown(cloud, uuid)
        assert (begun["state"], begun["wave"], begun["hosts"], begun["left"]) == (
            "running",
            0,
            {"waiting": 1},
            1,
        )
        for _ in range(2):
            await cloud.now.super.step()
        one = (await hosts_of(cloud, uuid))[host]
        assert (one["state"], one["wave"], one["instances"]) == ("emptying", 1, 1)
        word = (await cloud.ask("GET", f"/v1/hosts/{host}")).json()
        assert (word["enabled"], word["reason"]) == (False, f"maintenance {uuid}")
        assert await emptied(cloud, uuid) == host
        [move] = (await cloud.ask("GET", f"/v1/moves?instance={cloud.instance}")).json()["moves"]
        assert move["state"] == "done"
        done = await said(cloud, uuid, f"hosts/{host}/done")
        assert done.status_code == 202, done.text
        for _ in range(2):
            await cloud.now.super.step()
        over = await shown(cloud, uuid)
        assert (over["state"], over["wave"], over["hosts"], over["left"]) == ("done", 1, {"returned": 1}, 0)
        one = (await hosts_of(cloud, uuid))[host]
        assert (one["instances"], one["hook"]["failure"]) == (None, None)
        assert (await cloud.ask("GET", f"/v1/hosts/{host}")).json()["enabled"]
        kinds = [each["kind"] for each in (await cloud.ask("GET", "/v1/events")).json()["events"]]
        assert [each for each in kinds if each.startswith("maintenance_")] == [
            "maintenance_begun",
            "maintenance_wave",
            "maintenance_ended",
        ]

    playing(tmp_path, play)


def test_words_are_heard_once_and_refused_where_they_make_no_sense(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        host = (await cloud.shown())["host"]
        uuid = await started(cloud, host)
        for word, state in (("pause", "paused"), ("pause", "paused"), ("resume", "running")):
            answer = await said(cloud, uuid, word)
            assert (answer.status_code, answer.json()["state"]) == (202, state)
        early = await said(cloud, uuid, f"hosts/{host}/done")
        assert early.status_code == 409 and "waits for its wave" in detail(early)
        other = await said(cloud, uuid, "hosts/moon/done")
        assert other.status_code == 409 and "has no host 'moon'" in detail(other)
        for _ in range(2):
            await cloud.now.super.step()
        paused = await said(cloud, uuid, "pause")
        assert paused.json()["reason"] == "admin has paused it"
        drain = (await cloud.ask("GET", f"/v1/hosts/{host}/drain")).json()
        assert (drain["enabled"], drain["move"]) == (False, False)
        await said(cloud, uuid, "resume")
        assert (await cloud.ask("GET", f"/v1/hosts/{host}/drain")).json()["move"]
        cancelled = await said(cloud, uuid, "cancel")
        assert cancelled.json()["state"] == "cancelling"
        for _ in range(4):
            await cloud.now.super.step()
        over = await shown(cloud, uuid)
        assert (over["state"], over["hosts"]) == ("cancelled", {"left-out": 1})
        left_out = (await hosts_of(cloud, uuid, "?state=left-out"))[host]
        assert left_out["reason"] == "the maintenance was cancelled"
        assert (await cloud.ask("GET", f"/v1/hosts/{host}")).json()["enabled"]
        for word in ("pause", "resume", "cancel"):
            late = await said(cloud, uuid, word)
            assert late.status_code == 409 and "is cancelled" in detail(late)

    playing(tmp_path, play)


def test_a_host_is_in_one_maintenance_at_a_time_and_all_are_listed(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        first = await started(cloud, "a", "b")
        again = await cloud.ask("POST", PATH, {"hosts": ["b", "c"]})
        assert again.status_code == 409 and f"'b' is in maintenance {first}" in detail(again)
        second = await started(cloud, "c", keep_going=True, most_hosts=1)
        listed = (await cloud.ask("GET", PATH)).json()
        assert {each["uuid"] for each in listed["maintenances"]} == {first, second}
        assert listed["next"] is None
        page = (await cloud.ask("GET", f"{PATH}?limit=1")).json()
        rest = (await cloud.ask("GET", f"{PATH}?limit=1&marker={page['next']}")).json()
        assert {each["uuid"] for each in (*page["maintenances"], *rest["maintenances"])} == {first, second}
        [of_host] = (await cloud.ask("GET", f"{PATH}?host=b")).json()["maintenances"]
        assert of_host["uuid"] == first
        assert (await cloud.ask("GET", f"{PATH}?under_way=false")).json()["maintenances"] == []
        assert [*await hosts_of(cloud, first, "?limit=1")] == ["a"]
        assert [*await hosts_of(cloud, first, "?limit=1&marker=a")] == ["b"]

    playing(tmp_path, play)


def test_what_is_wrong_is_named_and_nothing_begins(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        unknown = await cloud.ask("POST", PATH, {"hosts": ["a", "moon"]})
        assert unknown.status_code == 404 and "no host 'moon'" in detail(unknown)
        for body in ({"hosts": []}, {"hosts": ["a"], "most_hosts": 0}, {"hosts": ["a"], "hook": "rm"}):
            assert (await cloud.ask("POST", PATH, body)).status_code == 400
        assert (await cloud.ask("POST", PATH, {"hosts": ["a"]}, **TOKEN)).status_code == 403
        assert (await cloud.ask("GET", PATH, **TOKEN)).status_code == 403
        nowhere = "00000000-0000-4000-8000-000000000000"
        for word in ("pause", "resume", "cancel", "hosts/a/done"):
            assert (await said(cloud, nowhere, word)).status_code == 404
        assert (await cloud.ask("GET", f"{PATH}/{nowhere}/hosts")).status_code == 404
        uuid = await started(cloud, "a")
        for query in ("marker=x", "marker=e+_" + nowhere, "limit=0"):
            assert (await cloud.ask("GET", f"{PATH}?{query}")).status_code == 400
        wrong = await cloud.ask("GET", f"{PATH}/{uuid}/hosts?state=lost")
        assert wrong.status_code == 400 and "'lost'" in detail(wrong)

    playing(tmp_path, play)


def test_a_request_that_is_sent_again_with_its_key_begins_one_maintenance(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        keyed = {**ADMIN, "Idempotency-Key": "one"}
        first = await cloud.ask("POST", PATH, {"hosts": ["a"]}, **keyed)
        again = await cloud.ask("POST", PATH, {"hosts": ["a"]}, **keyed)
        assert (first.status_code, again.status_code) == (202, 202)
        assert first.json() == again.json()
        refused = await cloud.ask("POST", PATH, {"hosts": ["a"]}, **{**ADMIN, "Idempotency-Key": "two"})
        assert refused.status_code == 409
        assert len((await cloud.ask("GET", PATH)).json()["maintenances"]) == 1

    playing(tmp_path, play)
