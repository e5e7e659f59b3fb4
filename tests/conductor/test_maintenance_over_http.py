"""Plans of a maintenance over HTTP: of a live cloud, by the scheduler's own filters; refusals say why."""

from typing import Any

import pytest

from roost.model.node import KEEPS_DISKS, YES, NodeReport
from roost.storage import DatabaseUnavailable
from support.conductor_api import ADMIN, FLAVOR, TOKEN, detail
from support.moving_cloud import Cloud, playing

PATH = "/v1/maintenances/plan"


async def planned(cloud: Cloud, hosts: list[str], **more: Any) -> dict[str, Any]:
    answer = await cloud.ask("POST", PATH, {"hosts": hosts, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def hosts_of(cloud: Cloud, cell: str) -> list[str]:
    page = (await cloud.ask("GET", f"/v1/hosts?cell={cell}")).json()
    return [each["host"] for each in page["hosts"]]


def test_a_host_is_emptied_into_the_others_of_its_cell(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        shown = await cloud.shown()
        found = await planned(cloud, [shown["host"]])
        assert found["left_out"] == []
        [wave] = found["waves"]
        assert wave["hosts"] == [shown["host"]]
        [move] = wave["moves"]
        assert (move["instance"], move["source_host"]) == (cloud.instance, shown["host"])
        others = set(await hosts_of(cloud, shown["cell"])) - {shown["host"]}
        assert move["target_host"] in others
        assert (found["moves"], found["least_waves"]) == (1, 1)
        assert (await cloud.shown()) == shown

    playing(tmp_path, play)


def test_a_plan_is_played_by_the_scheduler_wave_by_wave(tmp_path) -> None:
    """Each target that the plan names is taken by the scheduler, and all hosts have been empty once."""
    group = {"uuid": "5c1d8e6a-0000-4000-8000-0000000000aa", "policy": "anti-affinity"}

    async def play(cloud: Cloud) -> None:
        for host in ("a", "b"):
            body = {"flavor": FLAVOR, "group": group, "requested_host": host}
            answer = await cloud.client.post("/v1/instances", json=body, headers=ADMIN)
            assert answer.status_code == 202, answer.text
        for vcpus, count in ((2, 2), (1, 3)):
            body = {"flavor": {"vcpus": vcpus, "memory_mb": 0}, "count": count}
            assert (await cloud.client.post("/v1/instances", json=body)).status_code == 202
        await cloud.now.settle()
        plan = await planned(cloud, ["a", "b", "c", "d", "e"], reserve=False)
        assert not plan["left_out"]
        assert sorted(host for wave in plan["waves"] for host in wave["hosts"]) == ["a", "b", "c", "d", "e"]
        assert plan["moves"] >= 8
        for wave in plan["waves"]:
            for host in wave["hosts"]:
                await cloud.ask("PUT", f"/v1/hosts/{host}", {"enabled": False, "reason": "firmware"})
            for each in reversed(wave["moves"]):
                one = Cloud(cloud.now, cloud.client, each["instance"])
                attempt = (await one.shown())["attempt"]
                begun = await one.migrate({"host": each["target_host"]})
                assert begun.status_code == 202, begun.text
                await one.run_on_target(begun.json()["uuid"], attempt)
                await one.destroy(attempt, each["source_host"])
                shown = await one.shown()
                assert (shown["host"], shown["move"]) == (each["target_host"], None)
            for host in wave["hosts"]:
                left = (await cloud.ask("GET", f"/v1/instances?host={host}&all_projects=true")).json()
                assert left["instances"] == []
                await cloud.ask("PUT", f"/v1/hosts/{host}", {"enabled": True})

    playing(tmp_path, play)


def test_a_disabled_host_takes_no_instances(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        shown = await cloud.shown()
        for host in set(await hosts_of(cloud, shown["cell"])) - {shown["host"]}:
            answer = await cloud.ask("PUT", f"/v1/hosts/{host}", {"enabled": False, "reason": "old"})
            assert answer.status_code < 300, answer.text
        found = await planned(cloud, [shown["host"]])
        assert found["waves"] == []
        [left] = found["left_out"]
        assert (left["host"], left["instance"]) == (shown["host"], cloud.instance)
        assert "may be on no other host" in left["reason"]

    playing(tmp_path, play)


def test_instances_go_where_their_disks_are(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        shown = await cloud.shown()
        cell = await cloud.now.cell_of(cloud.instance)
        others = sorted(set(await hosts_of(cloud, shown["cell"])) - {shown["host"]})

        async def report(host: str, store: str | None) -> None:
            stats = {} if store is None else {KEEPS_DISKS: store}
            await cell.heartbeat(
                [NodeReport(host=host, node=f"node-{host}", cell=shown["cell"], stats=stats)]
            )
            await cloud.now.feed.refresh()

        for host in others:
            await report(host, "another store")
        [left] = (await planned(cloud, [shown["host"]], reserve=False))["left_out"]
        assert "may be on no other host" in left["reason"]
        await report(others[-1], YES)
        [wave] = (await planned(cloud, [shown["host"]], reserve=False))["waves"]
        assert [move["target_host"] for move in wave["moves"]] == others[-1:]
        await report(shown["host"], None)
        [left] = (await planned(cloud, [shown["host"]], reserve=False))["left_out"]
        assert "does not keep the disks" in left["reason"]

    playing(tmp_path, play)


def test_an_instance_that_moves_already_keeps_its_host(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        shown = await cloud.shown()
        move = (await cloud.migrate()).json()["uuid"]
        [left] = (await planned(cloud, [shown["host"]]))["left_out"]
        assert left["reason"] == f"instance {cloud.instance} moves already, by {move}"
        await cloud.word("abort", move)
        await cloud.now.step()

    playing(tmp_path, play)


def test_what_cannot_be_planned_is_refused(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(cloud: Cloud) -> None:
        host = (await cloud.shown())["host"]
        answer = await cloud.ask("POST", PATH, {"hosts": ["moon"]})
        assert answer.status_code == 400 and "no host 'moon' is known" in detail(answer)
        assert (await cloud.ask("POST", PATH, {"hosts": []})).status_code == 400
        assert (await cloud.ask("POST", PATH, {"hosts": [host], "most_hosts": 0})).status_code == 400
        assert (await cloud.ask("POST", PATH, {"hosts": [host]}, **TOKEN)).status_code == 403

        async def no_plan(*_: object) -> None:
            return None

        with monkeypatch.context() as patch:
            patch.setattr(cloud.now.scheduler, "plan_maintenance", no_plan)
            answer = await cloud.ask("POST", PATH, {"hosts": [host]}, **ADMIN)
            assert answer.status_code == 503 and "cannot be planned now" in detail(answer)

        async def away(*_: object) -> None:
            raise DatabaseUnavailable("cell1 is away")

        with monkeypatch.context() as patch:
            patch.setattr(type(cloud.now.super.context), "read", away)
            answer = await cloud.ask("POST", PATH, {"hosts": [host]})
            assert answer.status_code == 503 and "cell1 is away" in detail(answer)

    playing(tmp_path, play)
