"""Instances are shelved and unshelved over HTTP: by their projects, once for each key."""

import asyncio
from typing import Any

import httpx

from roost.conductor.http import create_app
from roost.conductor.verify import verify_instances
from roost.model.instance import AttemptKey, BuildResult, DestroyOrder, PowerResult
from roost.model.node import KEEPS_DISKS, YES, NodeReport
from roost.model.record import Attempt
from roost.placement.commands.allocations import ConsumerWrite
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.records.search import Search
from roost.state.cell_database.building import ConfirmAttempt, ReportResults
from roost.state.cell_database.deletions import note_destroyed
from roost.state.cell_database.power import report_power
from roost.state.cell_database.shelves import NO_SHELF
from roost.web.auth import NoAuth
from support.conducting import HOSTS, NOW, VCPUS, conducting
from support.conductor_api import ADMIN, OTHER, TOKEN, asked_for, detail
from support.moving_cloud import Cloud as MovingCloud
from support.moving_cloud import playing as playing_moves


class Cloud(MovingCloud):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ended: list[Attempt] = []
        """The ends of attempts, for the records."""

    async def say(self, verb: str, body: Any = None, **headers: str) -> httpx.Response:
        return await self.ask("POST", f"/v1/instances/{self.instance}/{verb}", body, **(headers or TOKEN))

    async def seen(self) -> dict[str, Any]:
        """The instance as its project sees it."""
        found: dict[str, Any] = (await self.ask("GET", f"/v1/instances/{self.instance}", **TOKEN)).json()
        return found

    async def row(self) -> Any:
        return (await (await self.now.cell_of(self.instance)).find([self.instance]))[self.instance]

    async def destroyed(self, host: str, attempt: int) -> None:
        """Play the host: it has destroyed the guest."""
        await self.tell(note_destroyed((DestroyOrder(self.instance, attempt, host),), NOW))
        await self.now.step()

    async def shelved(self, **body: Any) -> None:
        """Shelve the instance."""
        before = await self.shown()
        answer = await self.say("shelve", body)
        assert (answer.status_code, answer.json()["state"]) == (202, "shelving"), answer.text
        await self.destroyed(before["host"], before["attempt"])
        assert (await self.shown())["state"] == "shelved"

    async def built(self, failure: str | None = None) -> None:
        """Play the host: it has made the guest, or could not."""
        shown = await self.shown()
        key = AttemptKey(self.instance, shown["attempt"])
        cell = await self.now.cell_of(self.instance)
        assert await cell.write(ConfirmAttempt(key, shown["host"], NOW)) is True
        result = BuildResult(self.instance, shown["host"], key.attempt, failure)
        self.ended += await cell.write(ReportResults((result,), NOW, shown["cell"]))

    async def told(self, **headers: str) -> list[dict[str, Any]]:
        path = f"/v1/instances/{self.instance}/history"
        found: list[dict[str, Any]] = (await self.ask("GET", path, **(headers or ADMIN))).json()["actions"]
        return found

    async def held(self, consumer: str) -> Any:
        return (await self.now.placement.holdings((consumer,))).get(consumer)


def playing(directory: Any, play: Any) -> None:
    playing_moves(directory, lambda cloud: play(Cloud(cloud.now, cloud.client, cloud.instance)))


def test_a_project_shelves_its_instance_and_has_it_run_again_by_another_consumer(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        before = await cloud.shown()
        await cloud.shelved()
        shelved = await cloud.shown()
        assert (shelved["host"], shelved["claim"], shelved["node"]) == (None, None, None)
        assert await cloud.held(cloud.instance) is None
        listed = await cloud.ask("GET", "/v1/instances?state=shelved", **TOKEN)
        assert [each["uuid"] for each in listed.json()["instances"]] == [cloud.instance]

        answer = await cloud.say("unshelve")
        assert (answer.status_code, answer.json()["state"]) == (202, "unshelving"), answer.text
        await cloud.now.step()
        assigned = await cloud.shown()
        assert (assigned["state"], assigned["attempt"]) == ("assigned", before["attempt"] + 1)
        row = await cloud.row()
        assert row.consumer != cloud.instance and row.finds_disks
        assert (await cloud.held(row.consumer)).allocations == assigned["claim"]
        await cloud.built()
        assert (await cloud.shown())["state"] == "active"
        assert await verify_instances(cloud.now.ledger.database) == ([], [])

        told = await cloud.told()
        assert [(each["kind"], each["result"]) for each in told[1:]] == [
            ("shelve", "success"),
            ("unshelve", "success"),
        ]
        assert [(each["name"], each["result"]) for each in told[1]["events"]] == [
            ("offload", "success"),
            ("free", "success"),
        ]
        assert [(each["name"], each["result"]) for each in told[2]["events"]] == [
            ("build", "built"),
        ]
        assert {each["user_id"] for each in told} == {"user"}

    playing(tmp_path, play)


def test_the_run_that_unshelves_is_in_the_records_and_the_history_of_the_instance(tmp_path) -> None:
    async def use() -> None:
        backend = await open_sql_records(f"sqlite:///{tmp_path / 'records.db'}", Retention())
        records = RecordQueue(backend, gather_seconds=0.0)
        async with conducting(tmp_path, records) as now:
            rooms = (now.super, now.requests, now.aggregates, now.groups, now.placement, NoAuth())
            transport = httpx.ASGITransport(create_app(*rooms, records=records))
            async with httpx.AsyncClient(transport=transport, base_url="http://roost", headers=TOKEN) as to:
                [instance] = await asked_for(to, 1)
                await now.settle()
                cloud = Cloud(now, to, instance)
                await cloud.shelved()
                await cloud.say("unshelve")
                await now.step()
                await cloud.built("no disk")
                await now.step()
                await cloud.built()
                records.put([], cloud.ended)
                await records.flush()
                whole = await backend.find(Search(instance=instance))
                runs = {each.run.spec.get("operation", "create"): each for each in whole}
                again = runs["unshelve"]
                assert again.run.instances == (instance,)
                assert [each.instance for each in again.run.destinations] == [instance]
                ended = [(each.instance, each.result, each.ordinal) for each in again.attempts]
                assert ended == [(instance, "failed", 1), (instance, "built", 2)]
                assert again.run.of_instances == {(await cloud.row()).consumer: instance}
                told = (await cloud.told())[-1]
                assert [(each["name"], each["result"]) for each in told["events"]] == [
                    ("schedule", "selected"),
                    ("build", "failed"),
                    ("build", "built"),
                ]
                assert {each["run"] for each in told["events"]} == {again.run.id}
                # The creation has its own run and its own build.
                first = (await cloud.told())[0]["events"]
                assert [each["name"] for each in first] == ["accept", "schedule", "build"]
                assert first[1]["run"] == runs["create"].run.id
        await records.close()

    asyncio.run(use())


def test_a_stopped_instance_is_shelved_and_runs_when_it_is_back(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        await cloud.say("stop")
        host = (await cloud.shown())["host"]
        stopped = [PowerResult(cloud.instance, 1, runs=False)]
        await cloud.tell(lambda connection: report_power(connection, host, stopped, NOW))
        await cloud.shelved()
        await cloud.say("unshelve")
        await cloud.now.step()
        await cloud.built()
        assert (await cloud.shown())["state"] == "active"

    playing(tmp_path, play)


def test_disks_that_no_store_keeps_are_discarded_only_if_the_request_says_so(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        for stats in ({}, {KEEPS_DISKS: YES}):
            for host, cell in HOSTS.items():
                report = NodeReport(host=host, node=f"node-{host}", cell=cell, stats=stats)
                await cloud.now.cells[cell].heartbeat([report])
            refused = await cloud.say("shelve", {})
            assert (refused.status_code, detail(refused)) == (409, NO_SHELF)
        assert (await cloud.shown())["state"] == "active"
        await cloud.shelved(discard_disks=True)
        await cloud.say("unshelve")
        await cloud.now.step()
        assert not (await cloud.row()).finds_disks
        await cloud.built()

    playing(tmp_path, play)


def test_one_that_no_host_takes_stays_shelved_with_the_reason(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        await cloud.shelved()
        before = await cloud.row()
        for host in HOSTS:
            full = ConsumerWrite(
                consumer=f"all-of-{host}",
                allocations={f"node-{host}": {"VCPU": VCPUS}},
                project_id="others",
                user_id="others",
            )
            await cloud.now.placement.write_allocations((full,))
        await cloud.say("unshelve")
        await cloud.now.step()
        shown = await cloud.shown()
        assert shown["state"] == "shelved" and shown["reason"].startswith("No valid host was found"), shown
        assert (await cloud.seen())["reason"] == "The instance could not be unshelved: no host takes it now."
        row = await cloud.row()
        assert (row.attempt, row.shelf.store) == (before.attempt, before.shelf.store)
        assert await cloud.held(row.consumer) is None
        last = (await cloud.told())[-1]
        assert (last["kind"], last["result"]) == ("unshelve", "error")
        assert last["reason"].startswith("No valid host was found")
        assert (await cloud.told(**TOKEN))[-1]["reason"] == "No valid host was found."

    playing(tmp_path, play)


def test_a_host_that_cannot_build_it_is_followed_by_the_next_and_in_the_end_it_is_shelved(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        await cloud.shelved()
        await cloud.say("unshelve")
        await cloud.now.step()
        hosts = []
        while (shown := await cloud.shown())["state"] == "assigned":
            hosts.append(shown["host"])
            await cloud.built("the disk is not there")
            await cloud.now.step()
        assert len(hosts) > 1 and len(set(hosts)) == len(hosts)
        assert (shown["state"], shown["host"], shown["claim"]) == ("shelved", None, None)
        assert "the disk is not there" in shown["reason"]
        seen = (await cloud.told(**TOKEN))[-1]
        assert seen["result"] == "error" and seen["reason"] == "No host could build the instance."
        assert await cloud.held((await cloud.row()).consumer) is None
        first = (await cloud.row()).consumer
        assert (await cloud.say("unshelve")).json()["state"] == "unshelving"
        await cloud.now.step()
        await cloud.built()
        shown = await cloud.shown()
        assert (shown["state"], shown["attempt"]) == ("active", 2 + len(hosts))
        assert (await cloud.row()).consumer != first

    playing(tmp_path, play)


def test_a_late_report_of_another_attempt_or_host_frees_nothing(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        host = (await cloud.shown())["host"]
        await cloud.say("shelve", {})
        await cloud.destroyed(host, 2)
        await cloud.destroyed("another", 1)
        assert (await cloud.shown())["state"] == "shelving"
        assert await cloud.held(cloud.instance) is not None
        await cloud.destroyed(host, 1)
        await cloud.say("unshelve")
        await cloud.now.step()
        await cloud.destroyed(host, 1)
        shown = await cloud.shown()
        assert (shown["state"], shown["attempt"]) == ("assigned", 2)
        await cloud.built()

    playing(tmp_path, play)


def test_words_that_need_a_guest_are_refused_for_a_shelved_instance(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        await cloud.shelved()
        for verb, headers in (
            ("stop", TOKEN),
            ("start", TOKEN),
            ("rebuild", TOKEN),
            ("migrate", ADMIN),
            ("live-migrate", ADMIN),
        ):
            refused = await cloud.say(verb, {}, **headers)
            assert refused.status_code == 409, (verb, refused.text)
            assert "shelved" in detail(refused), (verb, detail(refused))
        resize = {"flavor": {"vcpus": 1, "memory_mb": 1}}
        assert (await cloud.say("resize", resize, **ADMIN)).status_code == 409
        assert (await cloud.say("shelve", {})).json()["state"] == "shelved"

    playing(tmp_path, play)


def test_one_that_runs_is_not_unshelved_and_one_that_moves_is_not_shelved(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        refused = await cloud.say("unshelve")
        assert refused.status_code == 409
        assert detail(refused) == "the instance is active: only one that is shelved can be unshelved"
        assert (await cloud.migrate()).status_code == 202
        refused = await cloud.say("shelve", {})
        assert detail(refused) == "the instance moves: it cannot be shelved before the move has ended"
        for verb in ("shelve", "unshelve"):
            assert (await cloud.say(verb, {}, **OTHER)).status_code == 404

    playing(tmp_path, play)


def test_a_word_that_is_sent_again_with_its_key_does_not_overtake_a_later_one(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        keyed = {**TOKEN, "Idempotency-Key": "one"}
        first = await cloud.say("shelve", {}, **keyed)
        await cloud.destroyed((await cloud.row()).host, 1)
        back = {**TOKEN, "Idempotency-Key": "two"}
        second = await cloud.say("unshelve", None, **back)
        await cloud.now.step()
        await cloud.built()
        consumer = (await cloud.row()).consumer
        again = await cloud.say("shelve", {}, **keyed)
        assert (again.status_code, again.content) == (202, first.content)
        again = await cloud.say("unshelve", None, **back)
        assert (again.status_code, again.content) == (202, second.content)
        assert (await cloud.shown())["state"] == "active"
        assert (await cloud.row()).consumer == consumer

    playing(tmp_path, play)


def test_a_shelved_instance_that_is_deleted_has_a_host_remove_its_disks(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        host = (await cloud.shown())["host"]
        await cloud.shelved()
        assert (await cloud.ask("DELETE", f"/v1/instances/{cloud.instance}", **TOKEN)).status_code == 202
        row = await cloud.row()
        # A late result of the shelving is of the attempt before: the disks would stay.
        assert (row.state, row.host, row.attempt) == ("deleting", host, 2)
        await cloud.destroyed(host, 1)
        assert (await cloud.row()).state == "deleting"
        await cloud.destroyed(host, 2)
        await cloud.now.settle()
        assert (await cloud.ask("GET", f"/v1/instances/{cloud.instance}", **TOKEN)).status_code == 404

    playing(tmp_path, play)


def test_one_of_which_nothing_is_kept_ends_without_a_host(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        await cloud.shelved(discard_disks=True)
        await cloud.ask("DELETE", f"/v1/instances/{cloud.instance}", **TOKEN)
        assert (await cloud.row()).state == "destroyed"
        await cloud.now.settle()

    playing(tmp_path, play)
