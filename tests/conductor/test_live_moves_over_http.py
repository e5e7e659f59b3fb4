"""Live migrations over HTTP: begun where hosts can, refused in words elsewhere, aborted, shown, recorded."""

from typing import Any

import pytest

from roost.model.instance import AttemptKey, BuildResult, PowerResult
from roost.model.move_states import CANCELLING, CLEANING, LANDING, RECEIVING, REQUESTED, SWITCHING
from roost.model.node import KEEPS_DISKS, LIVE_MOVES, YES, NodeReport
from roost.state.cell_database import move_reports, power
from roost.state.cell_database.move_orders import work_by_moves
from support.conducting import HOSTS, NOW
from support.conductor_api import ADMIN, TOKEN, detail
from support.moving_cloud import Cloud, playing

CAN = {KEEPS_DISKS: YES, LIVE_MOVES: YES}


async def report(cloud: Cloud, *hosts: str) -> None:
    """Have some hosts report that their guests can move while they run."""
    for host in hosts:
        cell = cloud.now.cells[HOSTS[host]]
        await cell.heartbeat([NodeReport(host=host, node=f"node-{host}", cell=HOSTS[host], stats=CAN)])
    await cloud.now.feed.refresh()


async def begin(cloud: Cloud, body: Any = None, **headers: str) -> Any:
    path = f"/v1/instances/{cloud.instance}/live-migrate"
    return await cloud.client.post(path, json=body or {}, headers=headers or ADMIN)


async def receiving(cloud: Cloud) -> tuple[str, AttemptKey, str, str]:
    """A live move whose target is to prepare: its uuid, the attempt, the source and the target."""
    await report(cloud, *HOSTS)
    uuid = (await begin(cloud)).json()["uuid"]
    await cloud.now.step()
    move = await cloud.move(uuid)
    assert move["state"] == RECEIVING, move
    return uuid, AttemptKey(cloud.instance, move["attempt"]), move["source_host"], move["target_host"]


async def orders(cloud: Cloud, host: str) -> list[str]:
    work = await cloud.tell(lambda connection: work_by_moves(connection, [host]))
    return [part.kind for part in work.get(host, ())]


async def says(cloud: Cloud, source: str, failure: str | None) -> None:
    """The source says whether the guest has left it."""
    told = PowerResult(cloud.instance, 1, runs=False, failure=failure)
    await cloud.tell(lambda c: power.report_power(c, source, [told], NOW))


def test_a_guest_goes_over_and_its_instance_is_on_the_target_once_that_says_so(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        uuid, key, source, target = await receiving(cloud)
        assert (await orders(cloud, source), await orders(cloud, target)) == ([], ["receive"])
        confirm = lambda c: move_reports.confirm_target(c, key, target, NOW)  # noqa: E731
        assert await cloud.tell(confirm) is None
        assert (await cloud.move(uuid))["state"] == SWITCHING
        assert (await orders(cloud, source), await orders(cloud, target)) == (["migrate"], ["receive"])
        await says(cloud, source, None)
        assert (await cloud.move(uuid))["state"] == LANDING
        assert await cloud.tell(confirm) is True
        assert (await cloud.shown())["host"] == source
        built = BuildResult(cloud.instance, target, key.attempt)
        await cloud.tell(lambda c: move_reports.report_target(c, built, NOW))
        assert (await cloud.move(uuid))["state"] == CLEANING
        shown = await cloud.shown()
        assert (shown["state"], shown["host"]) == ("active", target)
        assert await orders(cloud, source) == ["destroy"]
        await cloud.destroy(1, source)
        ended = await cloud.move(uuid)
        assert (ended["kind"], ended["state"]) == ("live_migrate", "done")
        path = f"/v1/instances/{cloud.instance}/history"
        actions = (await cloud.client.get(path, headers=ADMIN)).json()["actions"]
        assert [(each["kind"], each["result"]) for each in actions][-1] == ("live_migrate", "success")

    playing(tmp_path, play)


def test_a_target_that_says_it_has_no_guest_is_not_heard_before_the_source_has_spoken(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        uuid, key, source, target = await receiving(cloud)
        await cloud.tell(lambda c: move_reports.confirm_target(c, key, target, NOW))
        nothing = BuildResult(cloud.instance, target, key.attempt, "there is none")
        for state in (SWITCHING, "restarting"):
            await cloud.tell(lambda c: move_reports.report_target(c, nothing, NOW))
            assert (await cloud.move(uuid))["state"] == state
            if state == SWITCHING:
                await says(cloud, source, None)
        assert await orders(cloud, source) == ["start"]

    playing(tmp_path, play)


def test_an_abort_tells_the_source_which_says_where_the_guest_is(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        uuid, key, source, target = await receiving(cloud)
        await cloud.tell(lambda c: move_reports.confirm_target(c, key, target, NOW))
        for _ in range(2):
            assert (await cloud.word("abort", uuid)).json()["state"] == CANCELLING
        assert await orders(cloud, source) == ["cancel"]
        await says(cloud, source, "the migration was ended")
        await cloud.now.step()
        ended = await cloud.move(uuid)
        assert ended["state"] == "failed"
        assert "aborted the move" in ended["reason"]
        assert (await cloud.shown())["host"] == source
        late = await cloud.word("abort", uuid)
        assert late.status_code == 202

    playing(tmp_path, play)


def test_a_guest_that_has_left_the_source_is_not_kept_there_by_an_abort(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        uuid, key, source, target = await receiving(cloud)
        await cloud.tell(lambda c: move_reports.confirm_target(c, key, target, NOW))
        await says(cloud, source, None)
        answer = await cloud.word("abort", uuid)
        assert (answer.status_code, detail(answer)) == (409, "the guest has left the source")

    playing(tmp_path, play)


@pytest.mark.parametrize("force", [False, True])
def test_hosts_that_cannot_are_neither_source_nor_target(tmp_path, force: bool) -> None:
    async def play(cloud: Cloud) -> None:
        source = (await cloud.shown())["host"]
        answer = await begin(cloud)
        text = f"guests of host {source} do not move while they run"
        assert (answer.status_code, detail(answer)) == (409, text)
        await report(cloud, source)
        other = next(host for host, cell in HOSTS.items() if cell == HOSTS[source] and host != source)
        move = (await begin(cloud, {"host": other, "force": force})).json()
        assert move["state"] == REQUESTED
        await cloud.now.step()
        await cloud.now.step()
        ended = await cloud.move(move["uuid"])
        assert ended["state"] == "failed"
        assert "No valid host" in ended["reason"]

    playing(tmp_path, play)


def test_live_migrations_are_for_administrators(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        await report(cloud, *HOSTS)
        refused = await begin(cloud, None, **TOKEN)
        assert refused.status_code == 403
        assert "conductor:moves:live_migrate" in refused.text

    playing(tmp_path, play)
