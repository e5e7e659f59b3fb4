"""Refusals are explained by one process that stays, and follows what happens."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from roost.model.allocation import Consumer
from roost.model.change import AllocationsChanged
from roost.model.inventory import Inventory
from roost.placement.commands.inventories import SetInventories
from roost.scheduler import SchedulerOptions
from roost.scheduler.explain import ledger_copy
from roost.scheduler.explain.following_copy import COMMITS_REMEMBERED, WrittenConsumers
from support.clouds import NOW, Provider, flat, replace_report, spec, uuid_of
from support.offering import by_metrics
from support.scheduling import Room, Within

PATIENT = SchedulerOptions(explain_seconds=60.0)


def children() -> set[int]:
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for text in lists for pid in text.read_text().split()}


async def reason(room: Room, *asked: int) -> str:
    reasons = await room.scheduler.explain(spec(*asked))
    assert reasons is not None
    assert reasons.version == room.ledger.known().version
    return reasons.sentence


def test_one_process_follows_claims_commits_and_reports(within: Within) -> None:
    cloud = flat(3)

    async def work(room: Room) -> None:
        others = children()
        assert "the closest, host0, has 8 of the 9 VCPU wanted" in await room.refusal(1, 0, 9)
        [process] = children() - others
        assert await room.place(2, 0, 8) == ["host0", "host1"]
        assert (await reason(room, 1)).startswith("it fits: 1 host may be used, and host2 is the best")
        more = {"VCPU": Inventory(16), "MEMORY_MB": Inventory(8192), "DISK_GB": Inventory(100)}
        await room.ledger.execute(SetInventories(uuid_of(0), more))
        assert (await reason(room, 8)).startswith("it fits: 2 hosts may be used")
        room.scheduler.table.update([replace_report(each, enabled=False) for each in cloud.reports])
        assert "host0, is disabled" in await reason(room, 1)
        room.scheduler.table.update([cloud.reports[0], replace_report(cloud.reports[2], last_seen=NOW - 600)])
        assert (await reason(room, 1)).startswith("it fits: 1 host may be used, and host0 is the best")
        assert children() - others == {process}

    within(cloud, work, PATIENT)


def test_no_change_is_told_that_admits_a_host_without_a_weight(within: Within) -> None:
    cloud = flat(3)
    full = cloud.providers[1]
    cloud.providers[1] = Provider(
        full.uuid, full.inventories, None, frozenset({"CUSTOM_FAST"}), used={"VCPU": 8}
    )
    cloud.reports[1:] = [replace_report(each, metrics={"heat": 20.0}) for each in cloud.reports[1:]]

    async def changes(room: Room) -> list[str]:
        reasons = await room.scheduler.explain(spec(8, extra_specs={"trait:CUSTOM_FAST": "required"}))
        assert reasons is not None
        return [each.text for each in reasons.relaxations]

    async def work(room: Room) -> None:
        # Without the trait host2 would take it, but host0 may be used as well, and fails the request.
        assert await changes(room) == []
        room.scheduler.table.update([replace_report(cloud.reports[0], metrics={"heat": 20.0})])
        assert await changes(room) == ["without required CUSTOM_FAST"]

    options = SchedulerOptions(explain_seconds=60.0, plugins=by_metrics({"heat": -1.0}))
    within(cloud, work, options)


def test_a_process_that_died_is_replaced_and_costs_one_explanation_at_most(within: Within) -> None:
    async def work(room: Room) -> None:
        others = children()
        assert "has 8 of the 9 VCPU wanted" in await room.refusal(1, 0, 9)
        [process] = children() - others
        os.kill(process, signal.SIGKILL)
        said = [await room.refusal(1, 0, 10), await room.refusal(1, 0, 11)]
        assert "has 8 of the 11 VCPU wanted" in said[-1]
        assert process not in children()

    within(flat(3), work, PATIENT)


def test_the_process_ends_when_no_refusals_come(within: Within, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_copy, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(ledger_copy, "TELLING_SECONDS", 0.02)

    async def work(room: Room) -> None:
        others = children()
        assert "has 8 of the 9 VCPU wanted" in await room.refusal(1, 0, 9)
        while children() - others:
            await asyncio.sleep(0.01)
        assert await room.place(3, 0, 8) == ["host0", "host1", "host2"]
        assert "has 0 of the 2 VCPU wanted" in await room.refusal(1, 0, 2)

    within(flat(3), work, PATIENT)


def test_what_was_read_counts_unless_it_was_written_since() -> None:
    written = WrittenConsumers(7)
    assert written.is_as_of("a", 7) and not written.is_as_of("a", 6), "what was before the copy is not known"
    consumer = Consumer("a", "p", "u", 1)
    written.add(8, [AllocationsChanged("a", None, consumer, {}, {"host": {"VCPU": 1}})])
    assert (written.is_as_of("a", 7), written.is_as_of("a", 8), written.is_as_of("b", 7)) == (
        False,
        True,
        True,
    )
    for version in range(9, 9 + COMMITS_REMEMBERED):
        written.add(version, [])
    assert not written.is_as_of("b", 7) and written.is_as_of("a", 8)
