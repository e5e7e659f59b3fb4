"""Moves over HTTP: asked for, listed, shown, confirmed, reverted, aborted; refusals say why."""

import asyncio
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from oslo_policy.policy import RuleDefault

from roost.conductor.agent_endpoint.sessions import OpenSession, free_all_sessions
from roost.conductor.http import default_rules
from roost.conductor.moves.operations import MOVE_RULES
from roost.model.fence import Fence
from roost.model.instance import AttemptKey, BuildResult, PowerResult
from roost.model.move import MoveKind
from roost.model.move_states import CLEANING, PREPARING, REQUESTED, SWITCHED, UNDOING
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import start_counting, stop_counting
from roost.state.cell_database import move_reports, power
from roost.state.cell_database.building import ended_attempts_of
from roost.state.cell_database.host_work import SESSION, hosts_with_orders
from roost.state.cell_database.moves import begin_move
from roost.state.cell_database.silent_hosts import SilentHost, note_dead
from roost.state.leases import leases_of_kind, vacate_leases
from roost.storage import Database, DatabaseUnavailable, OutcomeUnknown
from roost.web.auth.rules import PolicyRules
from roost.web.policy import PROJECT_WRITER
from support.conducting import NOW
from support.conductor_api import ADMIN, OTHER, TOKEN, api, asked_for, detail
from support.moving_cloud import Cloud, playing
from support.works import is_of

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def counting() -> Iterator[None]:
    start_counting(metrics.CATALOGUE)
    yield
    stop_counting()


def test_an_instance_is_migrated_and_its_move_shown_with_its_steps(tmp_path, counting) -> None:
    async def play(cloud: Cloud) -> None:
        before = await cloud.shown()
        answer = await cloud.migrate()
        assert answer.status_code == 202, answer.text
        move = answer.json()
        uuid = move["uuid"]
        assert (move["instance"], move["kind"], move["state"]) == (cloud.instance, "migrate", REQUESTED)
        assert (move["cell"], move["source_host"]) == (before["cell"], before["host"])
        assert (move["target_host"], move["confirm"], move["user_id"]) == (None, True, "admin")
        assert (await cloud.shown())["move"] == uuid
        await cloud.run_on_target(uuid)
        moved = await cloud.move(uuid)
        assert moved["state"] == CLEANING
        await cloud.destroy(1, before["host"])
        ended, after = await cloud.move(uuid), await cloud.shown()
        assert metrics.INSTANCE_MOVES.labels("migrate", "done").value == 1
        assert (ended["state"], ended["reason"]) == ("done", None)
        assert (after["host"], after["attempt"], after["move"]) == (moved["target_host"], 2, None)
        assert after["host"] != before["host"]
        states = [each["state"] for each in ended["steps"]]
        assert states == [
            *("requested", "preparing", "stopping", "stopped", "starting", "switched", "cleaning"),
            *("freeing", "done"),
        ]
        assert [each["host"] for each in ended["steps"] if each["host"]] == [after["host"]]
        # Its project does not see that it moves, nor where.
        own = (await cloud.ask("GET", f"/v1/instances/{cloud.instance}", **TOKEN)).json()
        assert (own["move"], own["host"]) == (None, None)

    playing(tmp_path, play)


def test_each_kind_of_move_is_counted() -> None:
    kind = metrics.INSTANCE_MOVES.described_labels[0]
    assert kind.values == get_args(MoveKind)


def test_a_move_waits_to_be_confirmed_or_reverted_and_each_word_may_be_repeated(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        source = (await cloud.shown())["host"]
        first = (await cloud.migrate({"confirm": False})).json()["uuid"]
        early = await cloud.word("confirm", first)
        assert (early.status_code, detail(early)) == (
            409,
            "the move is requested; only one that is switched can be confirmed",
        )
        await cloud.run_on_target(first)
        moved = await cloud.move(first)
        assert moved["state"] == SWITCHED
        late = await cloud.word("abort", first)
        assert (late.status_code, detail(late)) == (
            409,
            "the instance runs on the target; revert the move, or confirm it",
        )
        for _ in range(2):
            assert (await cloud.word("revert", first)).status_code == 202
        assert (await cloud.word("confirm", first)).status_code == 409
        stopped = [PowerResult(cloud.instance, 2, runs=False)]
        started = [PowerResult(cloud.instance, 1, runs=True)]
        for host, reports in ((moved["target_host"], stopped), (source, started)):
            await cloud.tell(lambda c, host=host, told=reports: power.report_power(c, host, told, NOW))
        assert (await cloud.move(first))["state"] == UNDOING
        await cloud.now.step()
        await cloud.destroy(2, moved["target_host"])
        assert ((await cloud.move(first))["state"], (await cloud.shown())["host"]) == ("reverted", source)
        second = (await cloud.migrate({"confirm": False})).json()["uuid"]
        await cloud.run_on_target(second)
        confirmed = await cloud.word("confirm", second)
        assert (confirmed.status_code, confirmed.json()["state"]) == (202, CLEANING)
        await cloud.destroy(1, source)
        assert (await cloud.move(second))["state"] == "done"
        assert (await cloud.word("confirm", second)).json()["state"] == "done"

    playing(tmp_path, play)


def test_an_aborted_move_leaves_the_instance_where_it_is(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        before = await cloud.shown()
        for steps in range(2):
            uuid = (await cloud.migrate()).json()["uuid"]
            for _ in range(steps):
                await cloud.now.step()
            state = (await cloud.move(uuid))["state"]
            assert state == (REQUESTED, PREPARING)[steps]
            aborted = await cloud.word("abort", uuid)
            assert (aborted.status_code, aborted.json()["state"]) == (202, "returning"), aborted.text
            assert aborted.json()["reason"] == "admin aborted the move"
            # The host may have begun: it is told to destroy what it has.
            cell = await cloud.now.cell_of(cloud.instance)
            ended = await cell.read(ended_attempts_of(cloud.instance))
            assert [(each.attempt, each.reason) for each in ended] == (
                [(2, "admin aborted the move")] if steps else []
            )
            assert len(await cell.read(hosts_with_orders())) == steps
            await cloud.now.step()
            assert (await cloud.move(uuid))["state"] == "failed"
            assert (await cloud.word("abort", uuid)).json()["state"] == "failed"
            after = await cloud.shown()
            assert (after["host"], after["attempt"], after["move"]) == (before["host"], 1, None)

    playing(tmp_path, play)


def test_a_move_whose_target_was_told_to_start_the_guest_is_not_aborted(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        uuid = (await cloud.migrate()).json()["uuid"]
        await cloud.now.step()
        move = await cloud.move(uuid)
        key, target = AttemptKey(cloud.instance, 2), move["target_host"]
        stopped = [PowerResult(cloud.instance, 1, runs=False)]
        await cloud.tell(lambda c: move_reports.confirm_target(c, key, target, NOW))
        await cloud.tell(lambda c: power.report_power(c, move["source_host"], stopped, NOW))
        assert await cloud.tell(lambda c: move_reports.confirm_target(c, key, target, NOW)) is True
        refused = await cloud.word("abort", uuid)
        assert (refused.status_code, detail(refused)) == (
            409,
            "the target was told to start the guest; revert the move once the instance runs there",
        )

    playing(tmp_path, play)


def test_a_migration_that_cannot_begin_says_why_and_begins_nothing(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        host, cell = (await cloud.shown())["host"], (await cloud.shown())["cell"]
        elsewhere = {"cell1": "d", "cell2": "a"}[cell]
        beside = next(each for each in {"cell1": "abc", "cell2": "de"}[cell] if each != host)
        for body, status, words in (
            ({"host": host}, 409, f"the instance is on host {host} already"),
            ({"host": elsewhere}, 400, f"host '{elsewhere}' is not in cell {cell}, which has the instance"),
            ({"host": "nowhere"}, 400, f"host 'nowhere' is not in cell {cell}, which has the instance"),
            ({"host": ""}, 400, "host is empty"),
            ({"target": "a"}, 400, "target"),
        ):
            refused = await cloud.migrate(body)
            assert (refused.status_code, words in detail(refused)) == (status, True), refused.text
        await cloud.ask("PUT", f"/v1/hosts/{beside}", {"enabled": False, "reason": "new memory"})
        refused = await cloud.migrate({"host": beside})
        assert (refused.status_code, detail(refused)) == (400, f"host '{beside}' is disabled: new memory")
        for uuid in (NOBODY, "nonsense"):
            unknown = await cloud.ask("POST", f"/v1/instances/{uuid}/migrate", {})
            assert (unknown.status_code, detail(unknown)) == (404, f"no instance {uuid} in a cell")
            for method, path in (
                ("GET", ""),
                ("POST", "/confirm"),
                ("POST", "/revert"),
                ("POST", "/abort"),
            ):
                unknown = await cloud.ask(method, f"/v1/moves/{uuid}{path}")
                assert (unknown.status_code, detail(unknown)) == (404, f"no move {uuid}")
        assert (await cloud.ask("GET", "/v1/moves")).json()["moves"] == []
        uuid = (await cloud.migrate()).json()["uuid"]
        refused = await cloud.migrate()
        assert (refused.status_code, detail(refused)) == (409, f"move {uuid} of the instance is under way")

    playing(tmp_path, play)


def test_moves_are_for_administrators(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        uuid = (await cloud.migrate()).json()["uuid"]
        for headers in (TOKEN, OTHER):
            for method, path in (
                ("POST", f"/v1/instances/{cloud.instance}/migrate"),
                ("GET", "/v1/moves"),
                ("GET", f"/v1/moves/{uuid}"),
                ("POST", f"/v1/moves/{uuid}/confirm"),
                ("POST", f"/v1/moves/{uuid}/revert"),
                ("POST", f"/v1/moves/{uuid}/abort"),
            ):
                body = {} if method == "POST" else None
                assert (await cloud.ask(method, path, body, **headers)).status_code == 403, path

    playing(tmp_path, play)


def test_a_project_that_may_move_its_instances_sees_neither_hosts_nor_others(tmp_path) -> None:
    allowed = [
        RuleDefault(each.name, PROJECT_WRITER if each.name in MOVE_RULES else each.check_str)
        for each in default_rules()
    ]

    async def run() -> None:
        async with api(tmp_path, rules=PolicyRules(allowed, None, True)) as (now, client):
            [mine] = await asked_for(client, 1)
            [theirs] = await asked_for(client, 1, OTHER)
            await now.settle()
            moves = {}
            for instance, headers in ((mine, TOKEN), (theirs, OTHER)):
                answer = await client.post(f"/v1/instances/{instance}/migrate", json={}, headers=headers)
                assert answer.status_code == 202, answer.text
                moves[instance] = answer.json()["uuid"]
                other = OTHER if headers is TOKEN else TOKEN
                refused = await client.post(f"/v1/instances/{instance}/migrate", json={}, headers=other)
                assert refused.status_code == 404
            await now.step()
            page = (await client.get("/v1/moves")).json()
            one = (await client.get(f"/v1/moves/{moves[mine]}")).json()
            assert [each["uuid"] for each in page["moves"]] == [moves[mine]]
            for shown in (page["moves"][0], one):
                assert (shown["instance"], shown["state"], shown["user_id"]) == (mine, PREPARING, None)
            steps = [(each["state"], each["host"]) for each in one["steps"]]
            assert steps == [(REQUESTED, None), (PREPARING, None)]
            assert not [name for name in ("node-", "cell1", "cell2") if name in f"{page}{one}"]
            assert (await client.get("/v1/moves", params={"host": "a"})).status_code == 403
            for method, path in (("GET", ""), ("POST", "/abort"), ("POST", "/confirm"), ("POST", "/revert")):
                refused = await client.request(method, f"/v1/moves/{moves[theirs]}{path}")
                assert refused.status_code == 404, path
            aborted = await client.post(f"/v1/moves/{moves[mine]}/abort")
            assert (aborted.status_code, aborted.json()["reason"]) == (202, None)

    asyncio.run(run())


def test_moves_wait_for_processes_of_earlier_versions(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        old = OpenSession(host="old", nonce="n", previous=(), service_version=3, at=1.0)
        await cloud.now.cells["cell1"].write(old)
        await cloud.now.super.watch.look()
        refused = await cloud.migrate()
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (409, "roost.feature_off")
        assert "instances move between hosts once all processes have service version 4" in detail(refused)

    playing(tmp_path, play)


def test_moves_are_listed_by_page_the_newest_first(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            instances = await asked_for(client, 6)
            await now.settle()
            began = {}
            for number, instance in enumerate(instances):
                # Two of each time.
                now.super.context._clock = lambda at=NOW + number // 2: at  # type: ignore[attr-defined]
                answer = await client.post(f"/v1/instances/{instance}/migrate", json={}, headers=ADMIN)
                began[answer.json()["uuid"]] = answer.json()
            ordered = sorted(began, key=lambda uuid: (-began[uuid]["began_at"], uuid))

            async def listed(**query: Any) -> list[str]:
                found: list[str] = []
                marker: dict[str, str] = {}
                while True:
                    params = {**query, **marker}
                    page = (await client.get("/v1/moves", params=params, headers=ADMIN)).json()
                    assert page["cells_down"] == []
                    found += [each["uuid"] for each in page["moves"]]
                    if page["next"] is None:
                        return found
                    marker = {"marker": page["next"]}

            for limit in (1, 2, 4, 100):
                assert await listed(limit=limit) == ordered
            one = began[ordered[0]]
            assert await listed(instance=one["instance"].upper()) == [one["uuid"]]
            for name in ("cell", "source_host"):
                expected = [uuid for uuid in ordered if began[uuid][name] == one[name]]
                assert await listed(**{name.removeprefix("source_"): one[name]}) == expected
            aborted = await client.post(f"/v1/moves/{ordered[1]}/abort", headers=ADMIN)
            assert aborted.status_code == 202
            await now.step()
            await client.post(f"/v1/moves/{ordered[1]}/abort", headers=ADMIN)
            assert await listed(under_way="false") == [ordered[1]]
            assert await listed(under_way="true") == [each for each in ordered if each != ordered[1]]
            wrong = await client.get("/v1/moves", params={"marker": "zzz"}, headers=ADMIN)
            assert (wrong.status_code, detail(wrong)) == (
                400,
                "marker 'zzz' is not `next` of a page of moves",
            )
            down = await client.get("/v1/moves", params={"cell": "nowhere"}, headers=ADMIN)
            assert down.json() == {"moves": [], "next": None, "cells_down": ["nowhere"]}

    asyncio.run(run())


def test_a_cell_that_is_down_hides_its_own_moves_only(tmp_path, monkeypatch) -> None:
    async def play(cloud: Cloud) -> None:
        uuid = (await cloud.migrate()).json()["uuid"]
        cell = (await cloud.shown())["cell"]
        for name in cloud.now.cells:

            async def away(work: Any, *, by_key: bool = False) -> Any:
                raise DatabaseUnavailable("no answer")

            with monkeypatch.context() as broken:
                broken.setattr(cloud.now.cells[name].database, "read", away)
                page = (await cloud.ask("GET", "/v1/moves")).json()
                assert page["cells_down"] == [name]
                assert [each["uuid"] for each in page["moves"]] == ([] if name == cell else [uuid])
                found = await cloud.ask("GET", f"/v1/moves/{uuid}")
                assert found.status_code == (503 if name == cell else 200)
                # It may be there.
                assert (await cloud.ask("GET", f"/v1/moves/{NOBODY}")).status_code == 503

    playing(tmp_path, play)


def test_a_request_with_a_key_begins_one_move_even_if_its_answer_was_lost(tmp_path, monkeypatch) -> None:
    async def play(cloud: Cloud) -> None:
        write = Database.write

        async def committed_and_lost(self: Database, work: Any) -> Any:
            done = await write(self, work)
            if is_of(work, begin_move):
                raise OutcomeUnknown("no answer")
            return done

        key = {"Idempotency-Key": "k"}
        with monkeypatch.context() as lossy:
            lossy.setattr(Database, "write", committed_and_lost)
            lost = await cloud.migrate(**key)
        assert (lost.status_code, lost.json()["errors"][0]["code"]) == (503, "roost.outcome_unknown")
        [begun] = (await cloud.ask("GET", "/v1/moves")).json()["moves"]
        again = await cloud.migrate(**key)
        assert (again.status_code, again.json()) == (202, begun)
        assert "idempotent-replayed" not in again.headers
        replayed = await cloud.migrate(**key)
        assert (replayed.status_code, replayed.json()) == (202, begun)
        assert replayed.headers["idempotent-replayed"] == "true"
        contradicts = await cloud.migrate({"confirm": False}, **key)
        assert (contradicts.status_code, contradicts.json()["errors"][0]["code"]) == (
            422,
            "roost.idempotency_key_reused",
        )
        assert len((await cloud.ask("GET", "/v1/moves")).json()["moves"]) == 1

    playing(tmp_path, play)


def test_a_repeated_request_is_answered_though_its_host_was_disabled_meanwhile(tmp_path, monkeypatch) -> None:
    async def play(cloud: Cloud) -> None:
        shown = await cloud.shown()
        beside = next(
            each for each in {"cell1": "abc", "cell2": "de"}[shown["cell"]] if each != shown["host"]
        )
        monkeypatch.setattr("roost.web.idempotency.KeyedRequests._created", unkept)
        first = await cloud.migrate({"host": beside}, **{"Idempotency-Key": "k"})
        assert first.status_code == 202
        await cloud.ask("PUT", f"/v1/hosts/{beside}", {"enabled": False})
        again = await cloud.migrate({"host": beside}, **{"Idempotency-Key": "k"})
        assert again.json() == first.json()

    playing(tmp_path, play)


async def unkept(self: Any, req: Any, resp: Any, creation: Any, key: Any, create: Any) -> bytes:
    """Create, and die before the answer is kept."""
    req.idempotency_key, req.answer_status = key, resp.status_code
    body: bytes = await create()
    return body


def test_an_instance_that_is_resized_has_its_flavor_on_the_target_and_before_again_after_a_revert(
    tmp_path,
) -> None:
    async def play(cloud: Cloud) -> None:
        path = f"/v1/instances/{cloud.instance}/resize"
        before = await cloud.shown()
        answer = await cloud.ask("POST", path, {"flavor": {"name": "big", "vcpus": 2, "memory_mb": 0}})
        assert answer.status_code == 202, answer.text
        move = answer.json()
        assert (move["kind"], move["flavor"], move["confirm"]) == ("resize", "big", False)
        await cloud.run_on_target(move["uuid"])
        assert (await cloud.shown())["flavor"] == "big"
        assert (await cloud.word("revert", move["uuid"])).status_code == 202
        source, target = before["host"], (await cloud.move(move["uuid"]))["target_host"]
        for host, report in (
            (target, PowerResult(cloud.instance, 2, runs=False)),
            (source, PowerResult(cloud.instance, 1, runs=True)),
        ):
            await cloud.tell(lambda c, host=host, report=report: power.report_power(c, host, [report], NOW))
        await cloud.now.step()
        await cloud.destroy(2, target)
        assert (await cloud.move(move["uuid"]))["state"] == "reverted"
        after = await cloud.shown()
        assert (after["flavor"], after["host"]) == (before["flavor"], source)
        bad = await cloud.ask("POST", path, {"flavor": {"name": "big", "vcpus": -1, "memory_mb": 0}})
        assert bad.status_code == 400

    playing(tmp_path, play)


def test_an_instance_whose_driver_keeps_two_sizes_may_stay_on_its_host(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        path = f"/v1/instances/{cloud.instance}/resize"
        host = (await cloud.shown())["host"]
        wanted = {"flavor": {"name": "big", "vcpus": 2, "memory_mb": 0}, "host": host}
        refused = await cloud.ask("POST", path, wanted)
        assert (refused.status_code, f"is on host {host} already" in refused.text) == (409, True)
        refused = await cloud.ask("POST", path, {**wanted, "in_place": True})
        assert (refused.status_code, "does not keep two sizes" in refused.text) == (409, True)

    playing(tmp_path, play)


def test_all_instances_of_a_dead_host_are_evacuated_by_one_word(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        source = (await cloud.shown())["host"]
        assert (await cloud.ask("POST", "/v1/hosts/nowhere/evacuate", {"evidence": "x"})).status_code == 404
        await cloud.tell(OpenSession(host=source, nonce="n", previous=(), service_version=4, at=NOW))
        path = f"/v1/hosts/{source}/evacuate"
        early = (await cloud.ask("POST", path, {"evidence": "it burns"})).json()
        assert early["moves"] == []
        assert "silent" in early["refused"][cloud.instance]
        await cloud.tell(free_all_sessions())
        key = {**ADMIN, "Idempotency-Key": "burning"}
        answers = [await cloud.ask("POST", path, {"evidence": "it burns"}, **key) for _ in range(2)]
        assert answers[0].status_code == 202, answers[0].text
        assert answers[0].json() == answers[1].json()
        [move] = answers[0].json()["moves"]
        assert (move["instance"], move["kind"], move["source_host"]) == (cloud.instance, "evacuate", source)
        again = (await cloud.ask("POST", path, {"evidence": "it burns"})).json()
        assert again["refused"] == {cloud.instance: f"move {move['uuid']} of the instance is under way"}

    playing(tmp_path, play)


def test_a_host_shows_its_fence_and_what_was_said_of_its_silence(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        source = (await cloud.shown())["host"]
        fence = Fence(60.0, 20.0, guarded=True)
        await cloud.tell(free_all_sessions())
        await cloud.tell(_opening(source, fence))
        shown = (await cloud.ask("GET", f"/v1/hosts/{source}")).json()
        assert shown["fence"] == {"seconds": 60.0, "stop_seconds": 20.0, "guarded": True}
        assert shown["silence"] is None
        session = next(each for each in await cloud.tell(leases_of_kind(SESSION)) if each.host == source)
        await cloud.tell(vacate_leases([session]))
        row = SilentHost(
            host=source,
            epoch=session.epoch + 1,
            counter=session.counter,
            state="dead",
            kind="fence",
            words="fenced by its agent after 60 s of silence",
            conductor="conductor/here",
            at=NOW,
        )
        assert await cloud.tell(note_dead(row)) is True
        silence = (await cloud.ask("GET", f"/v1/hosts/{source}")).json()["silence"]
        assert silence == {
            "state": "dead",
            "reason": row.words,
            "proof": "fence",
            "by": "conductor/here",
            "judged_at": NOW,
        }

    playing(tmp_path, play)


def _opening(host: str, fence: Fence) -> OpenSession:
    return OpenSession(host=host, nonce="n", previous=(), service_version=9, at=NOW, fence=fence)


def test_an_instance_is_evacuated_with_evidence_once_its_host_is_silent(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        path, source = f"/v1/instances/{cloud.instance}/evacuate", (await cloud.shown())["host"]
        assert (await cloud.ask("POST", path, {})).status_code == 400
        opening = OpenSession(host=source, nonce="n", previous=(), service_version=4, at=NOW)
        await cloud.tell(opening)
        early = await cloud.ask("POST", path, {"evidence": "it burns"})
        assert (early.status_code, detail(early)) == (
            409,
            f"the agent of host {source} has not been silent for long enough",
        )
        await cloud.tell(free_all_sessions())
        answer = await cloud.ask("POST", path, {"evidence": "it burns"})
        assert answer.status_code == 202, answer.text
        move = answer.json()
        assert (move["kind"], move["evidence"], move["proof"]) == ("evacuate", "it burns", "operator")
        assert move["proved_by"] == move["user_id"]
        assert move["proved_at"] is not None
        assert (await cloud.shown())["state"] == "lost"
        await cloud.now.step()
        begun = await cloud.move(move["uuid"])
        key, target = AttemptKey(cloud.instance, begun["attempt"]), begun["target_host"]
        assert await cloud.tell(lambda c: move_reports.confirm_target(c, key, target, NOW))
        built = BuildResult(cloud.instance, target, begun["attempt"])
        await cloud.tell(lambda c: move_reports.report_target(c, built, NOW))
        after = await cloud.shown()
        assert (after["state"], after["host"]) == ("active", target)
        await cloud.destroy(1, source)
        assert (await cloud.move(move["uuid"]))["state"] == "done"

    playing(tmp_path, play)


def test_a_move_that_is_aborted_when_its_source_has_stopped_starts_the_guest_again(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        uuid = (await cloud.migrate()).json()["uuid"]
        await cloud.now.step()
        move = await cloud.move(uuid)
        key, source = AttemptKey(cloud.instance, 2), move["source_host"]
        stopped = [PowerResult(cloud.instance, 1, runs=False)]
        started = [PowerResult(cloud.instance, 1, runs=True)]
        await cloud.tell(lambda c: move_reports.confirm_target(c, key, move["target_host"], NOW))
        await cloud.tell(lambda c: power.report_power(c, source, stopped, NOW))
        assert (await cloud.move(uuid))["state"] == "stopped"
        assert (await cloud.word("abort", uuid)).json()["state"] == "restarting"
        assert not await cloud.tell(lambda c: move_reports.confirm_target(c, key, move["target_host"], NOW))
        await cloud.tell(lambda c: power.report_power(c, source, started, NOW))
        await cloud.now.step()
        ended = await cloud.move(uuid)
        assert (ended["state"], ended["reason"]) == ("failed", "admin aborted the move")
        assert (await cloud.shown())["host"] == source

    playing(tmp_path, play)
