"""Acts on an instance: stopped, started, moved, its move confirmed, taken back or aborted."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from roost.dashboard.actions.instance_act import ACTS
from roost.dashboard.html.states import move_state
from roost.model.instance import DestroyOrder
from roost.model.move_states import (
    CLEANING,
    ENDED,
    FAILED_MOVE,
    REQUESTED,
    RETURNING,
    REVERTING,
    SWITCHED,
    UNDER_WAY,
)
from roost.state.cell_database.deletions import note_destroyed
from support.dashboard_users import DashboardUsers, dashboard_users
from support.moving_cloud import Cloud


class Acting:
    """A dashboard with one instance of a project, which is active."""

    def __init__(self, users: DashboardUsers, uuid: str) -> None:
        self.users, self.uuid = users, uuid
        self.cloud = Cloud(users.now, users.conductor, uuid, {"x-auth-token": "olga"})

    async def question(self, verb: str, user: str = "olga") -> Any:
        return await self.users.view(f"/ui/actions/{verb}?instance={self.uuid}", user)

    async def act(self, verb: str, user: str = "olga", **fields: str) -> httpx.Response:
        """Open the page that asks, and send its form as it is, with further fields."""
        page = await self.users.get(f"/ui/actions/{verb}?instance={self.uuid}", user)
        assert page.status_code == 200, page.text
        return await self.users.post(f"/ui/actions/{verb}", {**hidden(page.text), **fields}, user)

    async def acts(self, user: str = "olga") -> list[str]:
        acts: list[str] = (await self.users.view(f"/ui/instances/{self.uuid}", user))["acts"]
        return acts

    async def shown(self) -> Any:
        answer = await self.users.conductor.get(
            f"/v1/instances/{self.uuid}", headers={"x-auth-token": "olga"}
        )
        return answer.json()

    async def moves(self) -> Any:
        path = f"/v1/moves?instance={self.uuid}"
        return (await self.users.conductor.get(path, headers={"x-auth-token": "olga"})).json()["moves"]


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of a form."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))


def acting(directory: Path, check: Callable[[Acting], Awaitable[None]]) -> None:
    async def opened() -> None:
        async with dashboard_users(directory) as users:
            [uuid] = await users.ask_for("mia")
            await users.now.settle()
            await check(Acting(users, uuid))

    asyncio.run(opened())


def test_an_instance_is_stopped_and_started_by_its_project(tmp_path: Path) -> None:
    async def check(on: Acting) -> None:
        assert await on.acts("mia") == ["stop", "shelve", "delete"] and await on.acts("rita") == []
        answer = await on.act("stop", "mia")
        assert answer.status_code == 200 and "is being stopped" in answer.text
        assert (await on.shown())["state"] == "powering-off"
        view = await on.question("stop", "mia")
        assert view["hindered"] == "This is not possible now: the instance is powering-off."
        refused = await on.users.post("/ui/actions/start", {"instance": on.uuid}, "rita")
        assert refused.status_code == 403

    acting(tmp_path, check)


def test_an_instance_is_shelved_and_unshelved_by_its_project(tmp_path: Path) -> None:
    async def check(on: Acting) -> None:
        host = (await on.shown())["host"]
        answer = await on.act("shelve", "mia")
        assert answer.status_code == 200 and "is being shelved" in answer.text, answer.text
        assert await on.acts("mia") == ["delete"]
        await on.cloud.tell(note_destroyed((DestroyOrder(on.uuid, 1, host),), 1.0))
        await on.users.now.step()
        page = await on.users.get(f"/ui/instances/{on.uuid}", "mia")
        assert "Shelved" in page.text
        assert await on.acts("mia") == ["unshelve", "delete"]
        assert "is being unshelved" in (await on.act("unshelve", "mia")).text
        assert (await on.shown())["state"] == "unshelving"

    acting(tmp_path, check)


def test_an_instance_is_moved_and_the_move_is_shown_and_confirmed(tmp_path: Path) -> None:
    async def check(on: Acting) -> None:
        assert await on.acts() == ["stop", "shelve", "migrate", "delete"]
        answer = await on.act("migrate", waits="on")
        assert answer.status_code == 200 and "is to move" in answer.text, answer.text
        [move] = await on.moves()
        assert (move["kind"], move["confirm"], move["requested_host"]) == ("migrate", False, None)
        view = await on.users.view(f"/ui/instances/{on.uuid}")
        assert (view["move"]["uuid"], view["move"]["state"]) == (move["uuid"], REQUESTED)
        assert view["acts"] == ["abort-move", "delete"]

        await on.cloud.run_on_target(move["uuid"])
        page = await on.users.get(f"/ui/instances/{on.uuid}")
        assert "Its move" in page.text and "Moved, not confirmed" in page.text
        assert await on.acts() == ["confirm-move", "revert-move", "delete"]
        answer = await on.act("confirm-move")
        assert "stays on its new host" in answer.text, answer.text
        assert (await on.moves())[0]["state"] == CLEANING

    acting(tmp_path, check)


def test_a_move_is_taken_back(tmp_path: Path) -> None:
    async def check(on: Acting) -> None:
        await on.act("migrate", waits="on")
        [move] = await on.moves()
        await on.cloud.run_on_target(move["uuid"])
        assert "goes back" in (await on.act("revert-move")).text
        assert (await on.moves())[0]["state"] == REVERTING

    acting(tmp_path, check)


def test_a_move_can_be_aborted_in_all_states_in_which_its_conductor_does_that() -> None:
    in_cell = {"requested", "preparing", "stopping", "stopped", "retrying"}
    assert {*(ACTS["abort-move"].states or ())} == in_cell | {"seeking", "sending", "receiving", "switching"}


def test_a_move_is_aborted_and_a_late_word_is_refused(tmp_path: Path) -> None:
    async def check(on: Acting) -> None:
        await on.act("migrate")
        page = await on.users.get(f"/ui/actions/abort-move?instance={on.uuid}")
        assert "stays where it is" in (await on.act("abort-move")).text
        [move] = await on.moves()
        assert move["state"] == RETURNING and move["reason"] == "olga aborted the move"
        await on.users.now.step()
        assert [each["state"] for each in await on.moves()] == [FAILED_MOVE]
        # The form of a page that is still open names the move that it showed.
        answer = await on.users.post("/ui/actions/confirm-move", hidden(page.text))
        assert answer.status_code == 409 and "The conductor refuses it" in answer.text

    acting(tmp_path, check)


def test_a_form_that_is_sent_again_moves_once(tmp_path: Path) -> None:
    async def check(on: Acting) -> None:
        page = await on.users.get(f"/ui/actions/migrate?instance={on.uuid}")
        for _ in range(2):
            answer = await on.users.post("/ui/actions/migrate", hidden(page.text))
            assert answer.status_code == 200, answer.text
        assert len(await on.moves()) == 1
        key = hidden(page.text)["key"]
        again = await on.users.view(f"/ui/actions/migrate?instance={on.uuid}&key={key}")
        assert again["key"] == key

    acting(tmp_path, check)


def test_a_migration_to_a_host_that_cannot_be_is_refused(tmp_path: Path) -> None:
    async def check(on: Acting) -> None:
        answer = await on.act("migrate", host="nowhere")
        assert answer.status_code == 400 and "nowhere" in answer.text
        assert await on.moves() == []

    acting(tmp_path, check)


@pytest.mark.parametrize("user", ["mia", "rita", "otto"])
def test_no_project_moves_instances(tmp_path: Path, user: str) -> None:
    async def check(on: Acting) -> None:
        await on.act("migrate", waits="on")
        [move] = await on.moves()
        await on.cloud.run_on_target(move["uuid"])
        for verb in ("migrate", "confirm-move", "revert-move", "abort-move"):
            assert (await on.users.get(f"/ui/actions/{verb}?instance={on.uuid}", user)).status_code == 403
            fields = {"instance": on.uuid, "move": move["uuid"]}
            assert (await on.users.post(f"/ui/actions/{verb}", fields, user)).status_code == 403
        [move] = await on.moves()
        assert move["state"] == SWITCHED
        if user != "otto":
            view = await on.users.view(f"/ui/instances/{on.uuid}", user)
            assert view["move"] is None and not {*view["acts"]} & {"migrate", "confirm-move"}
            page = await on.users.get(f"/ui/instances/{on.uuid}", user)
            assert "Its move" not in page.text and move["target_node"] not in page.text

    acting(tmp_path, check)


def test_each_question_says_what_will_happen_and_changes_nothing(tmp_path: Path) -> None:
    async def check(on: Acting) -> None:
        for verb in ACTS:
            view = await on.question(verb)
            assert view["will"] and view["user"] == "olga"
        assert (await on.shown())["state"] == "active" and await on.moves() == []

    acting(tmp_path, check)


def test_each_state_of_a_move_has_words() -> None:
    assert {state for state in (*UNDER_WAY, *ENDED) if move_state(state).words == state} == set()


def test_a_drain_has_its_instances_moved(tmp_path: Path) -> None:
    async def check(on: Acting) -> None:
        page = await on.users.get("/ui/actions/drain?host=a")
        assert 'name="move" value="on" checked' in page.text
        for fields, moves in (({"move": "on"}, True), ({}, False)):
            answer = await on.users.post("/ui/actions/drain", {"host": "a", **fields})
            assert answer.status_code == 200, answer.text
            drain = await on.users.conductor.get("/v1/hosts/a/drain", headers={"x-auth-token": "olga"})
            assert drain.json()["move"] is moves, drain.text

    acting(tmp_path, check)
