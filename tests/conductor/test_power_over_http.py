"""Instances are stopped and started over HTTP: by their projects, once for each key, and while all can."""

from typing import Any

import httpx

from roost.model.instance import PowerResult
from roost.state.cell_database.power import refuse_power, report_power
from support.conducting import NOW
from support.conductor_api import ADMIN, OTHER, TOKEN, detail
from support.moving_cloud import Cloud as MovingCloud
from support.moving_cloud import playing as playing_moves


class Cloud(MovingCloud):
    async def say(self, verb: str, **headers: str) -> httpx.Response:
        return await self.ask("POST", f"/v1/instances/{self.instance}/{verb}", **(headers or TOKEN))

    async def seen(self) -> dict[str, Any]:
        """The instance as its project sees it."""
        found: dict[str, Any] = (await self.ask("GET", f"/v1/instances/{self.instance}", **TOKEN)).json()
        return found

    async def report(self, *, runs: bool, failure: str | None = None, attempt: int = 1) -> None:
        """Play the host: it has stopped the guest, or started it."""
        host = (await self.shown())["host"]
        result = PowerResult(self.instance, attempt, runs, failure)
        await self.tell(lambda connection: report_power(connection, host, [result], NOW))


def playing(directory: Any, play: Any) -> None:
    playing_moves(directory, lambda cloud: play(Cloud(cloud.now, cloud.client, cloud.instance)))


def test_a_project_stops_its_instance_and_starts_it_and_reads_so_in_its_history(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        before = await cloud.shown()
        answer = await cloud.say("stop")
        assert (answer.status_code, answer.json()["state"]) == (202, "powering-off"), answer.text
        assert answer.json()["host"] is None
        await cloud.report(runs=False)
        stopped = await cloud.shown()
        assert (stopped["state"], stopped["host"], stopped["claim"]) == (
            "stopped",
            before["host"],
            before["claim"],
        )
        assert (await cloud.say("stop")).json()["state"] == "stopped"
        assert (await cloud.say("start")).json()["state"] == "powering-on"
        await cloud.report(runs=True)
        assert (await cloud.shown())["state"] == "active"
        history = await cloud.client.get(f"/v1/instances/{cloud.instance}/history", headers=TOKEN)
        told = [(each["kind"], each["result"], each["user_id"]) for each in history.json()["actions"]]
        assert told[1:] == [("stop", "success", "user"), ("start", "success", "user")]
        events = [each["result"] for action in history.json()["actions"][1:] for each in action["events"]]
        assert events == ["stopped", "started"]

    playing(tmp_path, play)


def test_what_its_host_cannot_do_is_in_the_reason(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        await cloud.say("stop")
        await cloud.report(runs=False, failure="busy")
        shown = await cloud.shown()
        assert (shown["state"], shown["reason"]) == ("active", "the guest could not be stopped: busy")
        assert (await cloud.seen())["reason"] is None
        await cloud.say("stop")
        await cloud.report(runs=False)
        await cloud.say("start")
        await cloud.report(runs=True, failure="there is no guest")
        shown = await cloud.shown()
        assert (shown["state"], shown["reason"]) == (
            "lost",
            "the guest could not be started: there is no guest",
        )
        history = await cloud.client.get(f"/v1/instances/{cloud.instance}/history", headers=ADMIN)
        told = [(each["kind"], each["result"]) for each in history.json()["actions"]]
        assert told[1:] == [("stop", "error"), ("stop", "success"), ("start", "error"), ("lose", None)]

    playing(tmp_path, play)


def test_a_report_that_is_late_of_another_attempt_or_of_another_host_changes_nothing(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        await cloud.report(runs=False)
        assert (await cloud.shown())["state"] == "active"
        await cloud.say("stop")
        await cloud.report(runs=True)
        await cloud.report(runs=False, attempt=2)
        result = PowerResult(cloud.instance, 1, runs=False)
        await cloud.tell(lambda connection: report_power(connection, "another", [result], NOW))
        assert (await cloud.shown())["state"] == "powering-off"
        await cloud.report(runs=False)
        await cloud.report(runs=False)
        assert (await cloud.shown())["state"] == "stopped"

    playing(tmp_path, play)


def test_a_host_whose_agent_is_too_old_stops_and_starts_nothing(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        await cloud.say("stop")
        found = await (await cloud.now.cell_of(cloud.instance)).find([cloud.instance])
        await cloud.tell(refuse_power((found[cloud.instance],), "its agent is too old", NOW))
        shown = await cloud.shown()
        assert shown["reason"] == "the guest could not be stopped: its agent is too old"
        assert shown["state"] == "active"

    playing(tmp_path, play)


def test_another_project_and_an_unknown_or_unplaced_instance_are_not_found(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        for verb in ("stop", "start"):
            assert (await cloud.say(verb, **OTHER)).status_code == 404
            nobody = await cloud.client.post(
                f"/v1/instances/00000000-0000-4000-8000-000000000000/{verb}", headers=TOKEN
            )
            assert nobody.status_code == 404
        assert (await cloud.say("stop", **ADMIN)).status_code == 202
        deleted = await cloud.client.delete(f"/v1/instances/{cloud.instance}", headers=TOKEN)
        assert deleted.status_code == 202
        assert (await cloud.say("start")).status_code == 404

    playing(tmp_path, play)


def test_an_instance_that_moves_is_not_stopped(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        move = f"/v1/instances/{cloud.instance}/migrate"
        assert (await cloud.client.post(move, json={}, headers=ADMIN)).status_code == 202
        answer = await cloud.say("stop")
        assert answer.status_code == 409
        assert detail(answer) == "the instance moves: it cannot be stopped before the move has ended"

    playing(tmp_path, play)


def test_a_word_that_is_sent_again_with_its_key_does_not_overtake_a_later_one(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        keyed = {**TOKEN, "Idempotency-Key": "one"}
        first = await cloud.say("stop", **keyed)
        await cloud.report(runs=False)
        await cloud.say("start")
        await cloud.report(runs=True)
        again = await cloud.say("stop", **keyed)
        assert (again.status_code, again.content) == (202, first.content)
        assert again.headers["idempotent-replayed"] == "true"
        assert (await cloud.shown())["state"] == "active"

    playing(tmp_path, play)
