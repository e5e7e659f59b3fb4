"""Moves to other cells over HTTP: asked for one by one, and by the drain of a whole cell."""

from typing import Any

from roost.conductor.agent_endpoint.sessions import OpenSession
from roost.conductor.words.departures import DrainTimes, ask_for_moves
from roost.model.instance import AttemptKey, BuildResult, DestroyOrder, PowerResult
from roost.state.cell_database import move_reports, power
from roost.state.cell_database.move_limits import MoveLimits
from roost.state.cell_database.moves import read_all_moves
from support.conducting import NOW
from support.conductor_api import ADMIN, asked_for, detail
from support.moving_cloud import Cloud, playing


async def tell(cloud: Cloud, cell: str, work: Any) -> None:
    await cloud.now.cells[cell].write(work)
    await cloud.now.step()


async def start(cloud: Cloud, uuid: str) -> dict[str, Any]:
    """Play the hosts of a move to another cell until the guest runs there; returns it as shown before."""
    for _ in range(2):
        await cloud.now.step()
    move = await cloud.move(uuid)
    source, target, there = move["source_host"], move["target_host"], move["target_cell"]
    instance, key = move["instance"], AttemptKey(move["instance"], move["attempt"])
    stopped = [PowerResult(instance, 1, runs=False)]
    built = BuildResult(instance, target, move["attempt"])
    await tell(cloud, there, lambda connection: move_reports.confirm_target(connection, key, target, NOW))
    await tell(cloud, move["cell"], lambda connection: power.report_power(connection, source, stopped, NOW))
    await tell(cloud, there, lambda connection: move_reports.confirm_target(connection, key, target, NOW))
    await tell(cloud, there, lambda connection: move_reports.report_target(connection, built, NOW))
    return move


async def cross(cloud: Cloud, uuid: str) -> dict[str, Any]:
    """Play the hosts of a move to another cell until nothing of it is left; returns it as shown then."""
    move = await start(cloud, uuid)
    gone = [DestroyOrder(move["instance"], 1, move["source_host"])]
    await tell(cloud, move["cell"], lambda c: move_reports.note_moves_destroyed(c, gone, NOW))
    await cloud.now.step()
    return await cloud.move(uuid)


async def disable_own_cell(cloud: Cloud, **body: Any) -> str:
    cell: str = (await cloud.shown())["cell"]
    answer = await cloud.ask("PUT", f"/v1/cells/{cell}", {"enabled": False, "reason": "new switches", **body})
    assert answer.status_code == 200, answer.text
    await cloud.now.feed.refresh()
    return cell


def test_an_instance_is_migrated_to_another_cell_and_shown_there_with_its_history(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        cell = await disable_own_cell(cloud)
        before = await cloud.shown()
        key = {"idempotency-key": "there"}
        answer = await cloud.migrate({"any_cell": True}, **key)
        assert answer.status_code == 202, answer.text
        uuid = answer.json()["uuid"]
        assert (answer.json()["any_cell"], answer.json()["target_cell"]) == (True, None)
        ended = await cross(cloud, uuid)
        assert (ended["state"], ended["cell"]) == ("done", cell), ended
        after = await cloud.shown()
        assert (after["cell"], after["host"]) == (ended["target_cell"], ended["target_host"])
        assert after["cell"] != cell == before["cell"]
        assert (after["attempt"], after["move"], after["state"]) == (2, None, "active")
        listed = (await cloud.ask("GET", "/v1/instances?all_projects=true")).json()["instances"]
        assert [each["uuid"] for each in listed] == [cloud.instance]
        moves = (await cloud.ask("GET", "/v1/moves")).json()["moves"]
        assert [each["uuid"] for each in moves] == [uuid], "the other half is none"
        told = (await cloud.ask("GET", f"/v1/instances/{cloud.instance}/history")).json()["actions"]
        assert [each["kind"] for each in told] == ["create", "migrate"]
        built = next(each for each in told[0]["events"] if each["name"] == "build")
        came = next(each for each in told[1]["events"] if each["name"] == "move")
        assert (built["cell"], built["host"]) == (cell, before["host"])
        assert (came["cell"], came["host"]) == (after["cell"], after["host"])
        again = await cloud.migrate({"any_cell": True}, **key)
        assert (again.status_code, again.json()["uuid"]) == (202, uuid), again.text

    playing(tmp_path, play)


async def resize(cloud: Cloud) -> dict[str, Any]:
    """Have the instance get another size in another cell, and run there; returns the move as it waits."""
    await disable_own_cell(cloud)
    body = {"flavor": {"name": "big", "vcpus": 2, "memory_mb": 0}, "any_cell": True}
    answer = await cloud.ask("POST", f"/v1/instances/{cloud.instance}/resize", body)
    assert answer.status_code == 202, answer.text
    await start(cloud, answer.json()["uuid"])
    await cloud.now.step()
    return await cloud.move(answer.json()["uuid"])


async def say(cloud: Cloud, verb: str, uuid: str, state: str) -> None:
    """Say a word twice, and another one that comes too late."""
    other = {"confirm": "revert", "revert": "confirm"}[verb]
    for _ in range(2):
        answer = await cloud.word(verb, uuid)
        assert (answer.status_code, answer.json()["state"]) == (202, state), answer.text
    for late in (other, "abort"):
        assert (await cloud.word(late, uuid)).status_code == 409


def test_a_resize_to_another_cell_waits_for_its_word_and_is_confirmed(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        move = await resize(cloud)
        assert (move["kind"], move["state"], move["confirm"]) == ("resize", "switched", False)
        shown = await cloud.shown()
        assert (shown["cell"], shown["host"]) == (move["target_cell"], move["target_host"])
        assert (shown["flavor"], shown["move"]) == ("big", move["uuid"])
        await say(cloud, "confirm", move["uuid"], "cleaning")
        await cloud.now.step()
        gone = [DestroyOrder(cloud.instance, 1, move["source_host"])]
        await tell(cloud, move["cell"], lambda c: move_reports.note_moves_destroyed(c, gone, NOW))
        await cloud.now.step()
        assert (await cloud.move(move["uuid"]))["state"] == "done"
        assert (await cloud.shown())["move"] is None

    playing(tmp_path, play)


def test_a_resize_to_another_cell_is_reverted_and_the_instance_is_shown_where_it_was(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        before = await cloud.shown()
        move = await resize(cloud)
        await say(cloud, "revert", move["uuid"], "reverting")
        source, target, there = move["source_host"], move["target_host"], move["target_cell"]
        stopped = [PowerResult(cloud.instance, 2, runs=False)]
        await tell(cloud, there, lambda c: power.report_power(c, target, stopped, NOW))
        assert (await cloud.move(move["uuid"]))["state"] == "resuming"
        assert (await cloud.shown())["cell"] == there, "its guest does not run at the source yet"
        started = [PowerResult(cloud.instance, 1, runs=True)]
        await tell(cloud, move["cell"], lambda c: power.report_power(c, source, started, NOW))
        await cloud.now.step()
        gone = [DestroyOrder(cloud.instance, 2, target)]
        await tell(cloud, there, lambda c: move_reports.note_moves_destroyed(c, gone, NOW))
        for _ in range(2):
            await cloud.now.step()
        ended = await cloud.move(move["uuid"])
        assert ended["state"] == "reverted", ended
        assert [each["state"] for each in ended["steps"]][-5:] == [
            *("resuming", "undoing", "discarding", "freeing", "reverted")
        ]
        after = await cloud.shown()
        for name in ("cell", "host", "node", "flavor", "attempt", "state", "move"):
            assert after[name] == before[name], name
        told = (await cloud.ask("GET", f"/v1/instances/{cloud.instance}/history")).json()["actions"]
        assert [each["kind"] for each in told] == ["create", "resize", "revert"]
        cells = [each["events"][-1]["cell"] for each in told[1:]]
        assert cells == [there, before["cell"]]
        again = await cloud.word("revert", move["uuid"])
        assert (again.status_code, again.json()["state"]) == (202, "reverted")

    playing(tmp_path, play)


def test_moves_to_other_cells_that_wait_for_a_word_wait_for_processes_of_earlier_versions(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        old = OpenSession(host="old", nonce="n", previous=(), service_version=11, at=1.0)
        await cloud.now.cells["cell1"].write(old)
        await cloud.now.super.watch.look()
        flavor = {"name": "big", "vcpus": 2, "memory_mb": 0}
        path = f"/v1/instances/{cloud.instance}/resize"
        for answer in (
            await cloud.migrate({"any_cell": True, "confirm": False}),
            await cloud.ask("POST", path, {"flavor": flavor, "any_cell": True, "confirm": True}),
        ):
            assert (answer.status_code, answer.json()["errors"][0]["code"]) == (409, "roost.feature_off")
            assert "once all processes have service version 12" in detail(answer)
        assert (await cloud.migrate({"any_cell": True})).status_code == 202

    playing(tmp_path, play)


def test_a_host_that_is_in_no_cell_is_refused(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        nowhere = await cloud.migrate({"any_cell": True, "host": "nowhere"})
        assert (nowhere.status_code, "in no cell" in detail(nowhere)) == (400, True)

    playing(tmp_path, play)


def test_a_cell_is_emptied_into_the_others_and_its_progress_shown(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        more = await asked_for(cloud.client, 1)
        await cloud.now.settle()
        cell = await disable_own_cell(cloud, move=True)
        here = await cloud.now.cells[cell].find([cloud.instance, *more])

        async def progress() -> dict[str, Any]:
            shown = await cloud.client.get(f"/v1/cells/{cell}/drain", headers=ADMIN)
            assert shown.status_code == 200, shown.text
            found: dict[str, Any] = shown.json()
            return found

        shown = await progress()
        assert (shown["host"], shown["cell"], shown["move"], shown["left"]) == (None, cell, True, len(here))
        await cloud.now.step()
        asked = await cloud.now.cells[cell].read(read_all_moves())
        assert {each.instance for each in asked.values()} == {*here}
        assert all(each.across and each.by.user_id == "drain" for each in asked.values())
        for uuid in asked:
            assert (await cross(cloud, uuid))["state"] == "done"
        shown = await progress()
        assert (shown["left"], shown["moving"], shown["moved"]) == (0, 0, len(here))
        assert not await cloud.now.cells[cell].every()

    playing(tmp_path, play)


def test_a_cell_is_not_emptied_while_a_process_knows_no_moves_to_other_cells(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        cell = await disable_own_cell(cloud, move=True)
        context, cells = cloud.now.super.context, cloud.now.cells

        async def asks(*, across: bool) -> None:
            await ask_for_moves(context, cells, MoveLimits(), DrainTimes(), across=across)

        await asks(across=False)
        assert await cells[cell].read(read_all_moves()) == {}
        await asks(across=True)
        [move] = (await cells[cell].read(read_all_moves())).values()
        assert move.across

    playing(tmp_path, play)
