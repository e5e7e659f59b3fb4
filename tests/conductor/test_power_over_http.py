"""Instances are stopped, started and rebuilt over HTTP: by their projects, once for each key."""

from typing import Any

import httpx

from roost.model.instance import AttemptKey, BuildResult, PowerResult
from roost.scheduler.errors import NoValidHost
from roost.scheduler.request.scheduling_request import HostRequest
from roost.state.api_database.kept_answers import keep_answer
from roost.state.cell_database.building import ConfirmAttempt
from roost.state.cell_database.power import refuse_power, report_power
from roost.storage import DatabaseUnavailable
from support.conducting import NOW
from support.conductor_api import ADMIN, OTHER, TOKEN, detail
from support.moving_cloud import Cloud as MovingCloud
from support.moving_cloud import playing as playing_moves
from support.works import is_of


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


# Rebuilds


class Rebuilt(Cloud):
    async def rebuild(self, body: Any = None, **headers: str) -> httpx.Response:
        return await self.ask(
            "POST", f"/v1/instances/{self.instance}/rebuild", body or {}, **(headers or TOKEN)
        )

    async def built(self, attempt: int, failure: str | None = None) -> None:
        """Play the host: it has made the guest, or could not."""
        host = (await self.shown())["host"]
        cell = await self.now.cell_of(self.instance)
        assert await cell.write(ConfirmAttempt(AttemptKey(self.instance, attempt), host, NOW)) is True
        await cell.report([BuildResult(self.instance, host, attempt, failure)])


def rebuilding(directory: Any, play: Any) -> None:
    playing_moves(directory, lambda cloud: play(Rebuilt(cloud.now, cloud.client, cloud.instance)))


def test_an_instance_is_rebuilt_as_its_next_attempt_with_its_claim(tmp_path) -> None:
    async def play(cloud: Rebuilt) -> None:
        before = await cloud.shown()
        answer = await cloud.rebuild({"image": {"id": "new", "properties": {"hw_disk_bus": "virtio"}}})
        assert answer.status_code == 202, answer.text
        assert answer.json()["state"] == "rebuilding"
        late = BuildResult(cloud.instance, before["host"], 1, "an earlier one failed")
        await (await cloud.now.cell_of(cloud.instance)).report([late])
        assert (await cloud.say("stop")).status_code == 409
        await cloud.built(2)
        after = await cloud.shown()
        assert (after["state"], after["host"], after["attempt"]) == ("active", before["host"], 2)
        assert after["claim"] == before["claim"]
        found = await (await cloud.now.cell_of(cloud.instance)).find([cloud.instance])
        image = found[cloud.instance].spec.image
        assert (image.id, image.properties) == ("new", {"hw_disk_bus": "virtio"})
        history = await cloud.client.get(f"/v1/instances/{cloud.instance}/history", headers=TOKEN)
        action = history.json()["actions"][-1]
        assert (action["kind"], action["result"], action["user_id"]) == ("rebuild", "success", "user")
        assert [(each["attempt"], each["result"]) for each in action["events"]] == [(2, "built")]

    rebuilding(tmp_path, play)


def test_a_rebuild_that_fails_leaves_the_instance_lost_with_its_claim(tmp_path) -> None:
    async def play(cloud: Rebuilt) -> None:
        before = await cloud.shown()
        await cloud.rebuild()
        await cloud.built(2, "no such image")
        shown = await cloud.shown()
        assert (shown["state"], shown["claim"]) == ("lost", before["claim"])
        assert shown["reason"] == "the guest could not be made anew: no such image"
        assert [(each["attempt"], each["reason"]) for each in shown["attempts"]] == [(2, "no such image")]
        assert (await cloud.rebuild()).status_code == 202
        await cloud.built(3)
        assert (await cloud.shown())["state"] == "active"
        history = await cloud.client.get(f"/v1/instances/{cloud.instance}/history", headers=ADMIN)
        told = [(each["kind"], each["result"]) for each in history.json()["actions"]]
        assert told[1:] == [("rebuild", "error"), ("lose", "success"), ("rebuild", "success")]

    rebuilding(tmp_path, play)


def test_a_rebuild_that_is_sent_again_with_its_key_is_carried_out_once(tmp_path) -> None:
    """Also if the answer to the first one was never stored."""

    async def play(cloud: Rebuilt) -> None:
        database, write = cloud.now.requests.database, cloud.now.requests.database.write

        async def away(work: Any) -> Any:
            if is_of(work, keep_answer):
                raise DatabaseUnavailable("the answer is lost")
            return await write(work)

        database.write = away  # type: ignore[method-assign]
        keyed = {**TOKEN, "Idempotency-Key": "one"}
        await cloud.rebuild(**keyed)
        database.write = write  # type: ignore[method-assign]
        await cloud.built(2)
        again = await cloud.rebuild(**keyed)
        assert (again.status_code, again.json()["state"]) == (202, "active"), again.text
        assert (await cloud.shown())["attempt"] == 2

    rebuilding(tmp_path, play)


def test_an_image_that_the_host_cannot_run_is_refused_with_the_filter_s_reason(tmp_path) -> None:
    async def play(cloud: Rebuilt) -> None:
        asked = {"image": {"id": "arm", "properties": {"hw_architecture": "aarch64"}}}
        refusing: list[HostRequest] = []

        async def select(request: HostRequest) -> Any:
            refusing.append(request)
            raise NoValidHost("run", "ImagePropertiesFilter rejected it", (), ())

        cloud.now.super.context.scheduler.select_destinations = select  # type: ignore[method-assign]
        before = await cloud.shown()
        answer = await cloud.rebuild(asked)
        assert answer.status_code == 409
        assert (
            detail(answer)
            == "the host of the instance cannot run this image: ImagePropertiesFilter rejected it"
        )
        assert await cloud.shown() == before
        [request] = refusing
        assert (request.spec.operation, request.spec.requested_destination.host) == (
            "rebuild",
            before["host"],
        )
        # Nobody judges the image that it has.
        assert (await cloud.rebuild()).status_code == 202

    rebuilding(tmp_path, play)


def test_an_instance_that_moves_or_is_stopped_by_its_host_is_not_rebuilt(tmp_path) -> None:
    async def play(cloud: Rebuilt) -> None:
        await cloud.say("stop")
        answer = await cloud.rebuild()
        assert (answer.status_code, detail(answer)) == (
            409,
            "the instance is powering-off: only one that is active, stopped, lost can be rebuilt",
        )
        await cloud.report(runs=False)
        assert (await cloud.rebuild()).json()["state"] == "rebuilding-stopped"
        await cloud.built(2)
        assert (await cloud.shown())["state"] == "stopped"
        await cloud.migrate()
        assert detail(await cloud.rebuild()) == (
            "the instance moves: it cannot be rebuilt before the move has ended"
        )
        assert (await cloud.rebuild(**OTHER)).status_code == 404

    rebuilding(tmp_path, play)
