"""Faults are contained: they concern one request or instance, are retried with a limit, and end in a state
that the user sees."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from roost.conductor.backoff import Backoff
from roost.conductor.super_conductor import SuperConductor
from roost.model.instance import ASSIGNED, DELETING, DESTROYED, ERROR, FAILED
from roost.model.record import PENDING
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import Forbidden, error_for
from roost.scheduler.errors import (
    PlacementFailed,
    PlacementRefused,
    PlacementUnavailable,
    SchedulerFault,
    SchedulerUnavailable,
)
from roost.state.api_database.cell_mappings import CELL0
from roost.state.cell_database.conductor_work import reassign_instance, take_work
from roost.storage import OutcomeUnknown, Transaction
from support.conducting import Conductors, conducting, intercept, request
from support.waiting import patience
from support.works import arguments_of

ONE = "i0"
BUSY = error_for(503, None, "busy")


class Failing:
    """Raises some errors, one a call, and then does what it stands for; the last error may stay."""

    def __init__(self, works: Callable[..., Any], errors: Sequence[Exception], stays: bool = False) -> None:
        self.calls = 0
        self._works = works
        self._errors = list(errors)
        self._stays = stays

    async def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.calls += 1
        if self._errors:
            raise self._errors[0] if self._stays else self._errors.pop(0)
        return await self._works(*arguments, **named)


class Stub:
    """A scheduler."""

    def __init__(self, decide: Failing) -> None:
        self.select_destinations = decide


def super_conductor(now: Conductors, decide: Failing, pauses: list[float]) -> SuperConductor:
    """A super conductor that waits for nothing and notes for how long it would have waited."""

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    backoff = Backoff(attempts=5, first_seconds=1.0, longest_seconds=3.0)
    stub: Any = Stub(decide)
    return SuperConductor(now.ledger.database, stub, now.placement, now.cells, backoff=backoff, sleep=sleep)


async def no_decision(*arguments: Any, **named: Any) -> Any:
    raise AssertionError("a decision that no test asks for")


async def carry(conductor: SuperConductor) -> None:
    await conductor.begin()
    await conductor.accept(request(2))
    await conductor.idle()


@pytest.mark.parametrize(
    "error",
    [PlacementFailed("placement has a defect"), SchedulerFault("a plugin failed"), ValueError("a defect")],
)
def test_fault_that_stays_ends_in_error_after_a_limited_number_of_attempts(tmp_path, error) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            decide, pauses = Failing(no_decision, [error], stays=True), []
            conductor = super_conductor(now, decide, pauses)
            await carry(conductor)
            assert decide.calls == 5
            assert pauses == [1.0, 2.0, 3.0, 3.0]
            for instance in (await now.instances()).values():
                assert instance.state == ERROR
                assert str(error) in (instance.reason or "")
                [fault] = await now.cells[CELL0].faults_of(instance.uuid)
                assert fault.reason == instance.reason
            assert [each async for each in now.requests.waiting()] == []
            assert conductor.failure is None
            await now.check()

    asyncio.run(run())


@pytest.mark.parametrize(
    "away",
    [
        PlacementUnavailable("placement is down"),
        SchedulerUnavailable("the scheduler is down"),
        ConnectionRefusedError("refused"),
        BUSY,
    ],
)
def test_an_outage_is_waited_out_however_long_it_takes(tmp_path, away) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            decide, pauses = Failing(now.scheduler.select_destinations, [away] * 20), []
            await carry(super_conductor(now, decide, pauses))
            assert (decide.calls, pauses) == (21, [1.0, 2.0, *[3.0] * 18])
            assert {each.state for each in (await now.instances()).values()} == {ASSIGNED}
            await now.check()

    asyncio.run(run())


@pytest.mark.parametrize("written", [True, False])
def test_request_whose_acceptance_has_no_answer_is_carried_out_if_it_is_written(
    tmp_path, monkeypatch, written
) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            write = now.ledger.database.write

            async def write_without_answer(work):
                if written:
                    await write(work)
                raise OutcomeUnknown("no answer")

            with monkeypatch.context() as cut:
                cut.setattr(now.ledger.database, "write", write_without_answer)
                with pytest.raises(OutcomeUnknown):
                    await now.super.accept(request(2))
            assert now.super.in_progress == 0
            await now.super.step()
            await now.arrive()
            found = await now.instances()
            assert [each.state for each in found.values()] == [ASSIGNED, ASSIGNED] * written
            assert [each async for each in now.requests.waiting()] == []
            await now.check()

    asyncio.run(run())


def test_refusal_by_placement_ends_in_error_at_once(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            decide, pauses = Failing(no_decision, [PlacementRefused("no such token")], stays=True), []
            await carry(super_conductor(now, decide, pauses))
            assert (decide.calls, pauses) == (1, [])
            assert {each.reason for each in (await now.instances()).values()} == {"no such token"}
            await now.check()

    asyncio.run(run())


def test_fault_that_passes_delays_a_request(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            works = now.scheduler.select_destinations
            decide, pauses = Failing(works, [PlacementUnavailable("down"), ValueError("a defect")]), []
            await carry(super_conductor(now, decide, pauses))
            assert (decide.calls, pauses) == (3, [1.0, 2.0])
            assert {each.state for each in (await now.instances()).values()} == {ASSIGNED}
            assert await now.used() == 2
            await now.check()

    asyncio.run(run())


def test_claims_of_a_request_that_was_given_up_are_freed_when_placement_answers_again(
    tmp_path, monkeypatch
) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            held = ConsumerWrite(
                consumer=ONE,
                allocations={"node-a": {"VCPU": 2}},
                project_id="p",
                user_id="u",
                consumer_type="INSTANCE",
            )
            await now.placement.write_allocations([held])
            decide, pauses = Failing(no_decision, [SchedulerFault("a plugin failed")], stays=True), []
            conductor = super_conductor(now, decide, pauses)
            free = Failing(now.placement.write_allocations, [BUSY] * 9)
            monkeypatch.setattr(now.placement, "write_allocations", free)
            await conductor.begin()
            await conductor.accept(request(2))
            seen: list[str] = []
            while not seen:
                await asyncio.sleep(0)
                seen = [each.state for each in (await now.instances()).values()]
            assert seen == [ERROR, ERROR], "the user sees it before the claims can be freed"
            await conductor.idle()
            assert free.calls == 10
            assert await now.used() == 0
            await now.check()

    asyncio.run(run())


def test_claims_of_a_request_that_was_given_up_are_freed_after_a_crash(tmp_path, monkeypatch) -> None:
    held = ConsumerWrite(
        consumer=ONE,
        allocations={"node-a": {"VCPU": 2}},
        project_id="p",
        user_id="u",
        consumer_type="INSTANCE",
    )

    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.placement.write_allocations([held])
            free = Failing(no_decision, [BUSY], stays=True)
            monkeypatch.setattr(now.placement, "write_allocations", free)
            decide = Failing(no_decision, [SchedulerFault("a plugin failed")], stays=True)
            conductor = super_conductor(now, decide, [])
            await conductor.begin()
            await conductor.accept(request(2))
            while free.calls < 8:
                await asyncio.sleep(0)
            await conductor.close()
            assert {each.state for each in (await now.instances()).values()} == {ERROR}
            assert [each async for each in now.requests.waiting()] == [request(2)]
            await now.check()
        async with conducting(tmp_path) as now:
            await now.super.resume()
            await now.arrive()
            assert [each async for each in now.requests.waiting()] == []
            assert {each.state for each in (await now.instances()).values()} == {ERROR}
            assert await now.used() == 0
            await now.check()

    asyncio.run(run())


async def fail_first(now: Conductors) -> list[str]:
    """Place one instance in cell1 and have its build fail; returns its hosts in order."""
    await now.run(request(ignore_hosts=frozenset("de")))
    instance = (await now.instances())[ONE]
    await now.build([instance.host or ""])
    return [instance.host or "", *(other.host for other in instance.alternates)]


@pytest.mark.parametrize(
    "error",
    [BUSY, error_for(429, None, "slow down"), ConnectionRefusedError("refused"), RuntimeError("a defect")],
)
def test_alternates_are_kept_while_placement_does_not_answer(tmp_path, monkeypatch, error) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            hosts = await fail_first(now)
            write = Failing(now.scheduler.use_alternate, [error, error])
            monkeypatch.setattr(now.scheduler, "use_alternate", write)
            before = (await now.instances())[ONE]
            for failures in (1, 2):
                await now.step()
                assert write.calls == failures
                after = (await now.instances())[ONE]
                assert msgspec.structs.replace(after, owner=None, owner_epoch=0) == before
                await now.step()
                assert write.calls == failures, "it was not due yet"
                now.passed += 1.0
            await now.step()
            instance = (await now.instances())[ONE]
            assert (instance.state, instance.host, instance.attempt) == (ASSIGNED, hosts[1], 2)
            assert [other.host for other in instance.alternates] == hosts[2:]
            assert [each.host for each in now.records.attempts if each.result == PENDING] == hosts[:2]
            await now.check()

    asyncio.run(run())


def test_an_outage_of_placement_ends_no_move(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            hosts = await fail_first(now)
            move = Failing(now.scheduler.use_alternate, [BUSY] * 20)
            monkeypatch.setattr(now.scheduler, "use_alternate", move)
            for _ in range(21):
                await now.step()
                now.passed += 1.0
            assert move.calls == 21
            instance = (await now.instances())[ONE]
            assert (instance.state, instance.host) == (ASSIGNED, hosts[1])
            await now.check()

    asyncio.run(run())


def test_placement_that_fails_at_each_claim_ends_in_error_with_the_reason(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            hosts = await fail_first(now)
            broken = error_for(500, None, "broken")
            monkeypatch.setattr(now.scheduler, "use_alternate", Failing(no_decision, [broken], stays=True))
            steps = 0
            while (await now.instances())[ONE].state == FAILED:
                steps += 1
                assert steps < 20
                await now.step()
                now.passed += 1.0
            instance = (await now.instances())[ONE]
            assert instance.state == ERROR
            assert "placement failed: PlacementError: broken" in (instance.reason or "")
            assert f"attempt 1 on {hosts[0]}: no IP" in (instance.reason or "")
            assert await now.used() == 0
            await now.check()

    asyncio.run(run())


def test_claim_that_can_never_be_made_ends_in_error_at_once(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await fail_first(now)
            write = Failing(no_decision, [Forbidden("not for you")], stays=True)
            monkeypatch.setattr(now.scheduler, "use_alternate", write)
            await now.step()
            instance = (await now.instances())[ONE]
            assert (instance.state, write.calls) == (ERROR, 1)
            assert "placement refuses to answer: Forbidden: not for you" in (instance.reason or "")
            await now.check()

    asyncio.run(run())


def test_defect_at_one_instance_does_not_stop_the_others(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(request(2, ignore_hosts=frozenset("de")))
            await now.build("abc")
            cell = now.cells["cell1"]

            async def poisoned(work: Transaction[bool], write: Any) -> bool:
                if arguments_of(work)["key"].instance == ONE:
                    raise UnicodeEncodeError("utf-8", "\udc80", 0, 1, "surrogates not allowed")
                return bool(await write(work))

            intercept(cell, reassign_instance, poisoned)
            for _ in range(9):
                await now.step()
                now.passed += 1.0
            found = await now.instances()
            assert found["i1"].state == ASSIGNED
            assert found[ONE].state == ERROR
            assert "surrogates not allowed" in (found[ONE].reason or "")
            await now.check()

    asyncio.run(run())


def test_conductor_of_a_cell_outlives_a_defect(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await fail_first(now)
            cell = now.cells["cell1"]
            defects = [TypeError("a defect")] * 3

            async def defective(work: Transaction[Any], write: Any) -> Any:
                if defects:
                    raise defects.pop()
                return await write(work)

            intercept(cell, take_work, defective)
            task = asyncio.create_task(now.of_cell["cell1"].run())
            async with asyncio.timeout(patience(30)):
                while (await now.instances())[ONE].attempt == 1:
                    await asyncio.sleep(0.01)
            assert not task.done()
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(run())


def test_claim_that_placement_refuses_to_free_keeps_no_other(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(request(3, ignore_hosts=frozenset("de")))
            await now.build()
            await now.super.delete(["i0", "i1", "i2"])
            for cell in now.cells.values():
                await cell.destroyed(await cell.in_state(DELETING))
            write, refusing = now.placement.write_allocations, [True]

            async def refuse(writes: Sequence[ConsumerWrite]) -> None:
                if refusing and ONE in {each.consumer for each in writes}:
                    raise error_for(400, None, "this one is odd")
                await write(writes)

            monkeypatch.setattr(now.placement, "write_allocations", refuse)
            await now.of_cell["cell1"].step()
            assert {uuid: each.state for uuid, each in (await now.instances()).items()} == {ONE: DESTROYED}
            assert await now.used() == 1
            refusing.clear()
            await now.of_cell["cell1"].step()
            assert await now.instances() == {}
            assert await now.used() == 0

    asyncio.run(run())
