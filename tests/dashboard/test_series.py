"""Use and states over time: from the index, from samples, and told where they are not known."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.dashboard.past.past_nodes import NodeKeys
from roost.dashboard.past.past_reads import PastReads
from roost.dashboard.past.sampler import Sampler
from roost.dashboard.past.samples import (
    HOUR,
    MINUTE,
    MOST_HOURS,
    MOST_MINUTES,
    PastSample,
    SampleStore,
    by_time,
)
from roost.dashboard.past.state_log import DAY, ENTRY, KEPT_DAYS, UNKNOWN, StateLog
from roost.dashboard.past.use_history import use_history
from roost.fleet.utilisation import class_uses
from roost.ledger.feed import commits_after
from roost.model.inventory import Inventory
from roost.process.lane import Lane
from roost.server.all_in_one.layout import uniform_layout
from support.dashboard_users import dashboard_users
from support.dashboards import DashboardClient, opened_dashboard
from support.past_histories import histories, made, view_of

LAYOUT = uniform_layout(4, 2, {"VCPU": Inventory(8), "MEMORY_MB": Inventory(4096)})


@settings(max_examples=15)
@given(steps=histories, size=st.sampled_from((4, 1000)))
def test_use_at_each_time_is_that_of_the_commits_until_then(steps: Sequence[Any], size: int) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_compare(Path(folder) / "roost.db", steps, size))


async def _compare(file: Path, steps: Sequence[Any], size: int) -> None:
    async with made(file, steps) as history:
        database = history.ledger.database
        commits = database.read_now(lambda connection: commits_after(connection, 0, 10_000, 2**30)).commits
        past = await history.fleets()
        newest = past.version
        # Uses after each commit, by what its changes alone do: the stamps of writers differ.
        totals = [_uses(await past.at(version)) for version in range(newest + 1)]
        now = {name: (round(used), round(capacity)) for name, (used, capacity) in totals[-1].items()}
        times = [
            commits[0].at - 5 + 7 * step for step in range(int((commits[-1].at - commits[0].at) / 7) + 8)
        ]
        found = use_history(view_of(database, size), now, newest, times)
        for place, at in enumerate(times):
            for name in now:
                steps_until = [
                    tuple(np.subtract(_of(totals[each.seq], name), _of(totals[each.seq - 1], name)))
                    for each in commits
                    if each.at <= at
                ]
                used, capacity = np.sum(steps_until, axis=0) if steps_until else (0, 0)
                assert (found.used[name][place], found.capacity[name][place]) == (used, capacity)


def _uses(fleet: Any) -> dict[str, tuple[int, int]]:
    return {each.resource_class: (each.used, each.capacity) for each in class_uses(fleet)}


def _of(uses: dict[str, tuple[int, int]], name: str) -> tuple[int, int]:
    return uses.get(name, (0, 0))


def sample(at: int, up: int = 1, runs: int | None = 2) -> PastSample:
    return PastSample(at, (up, 0, 0), {"active": up}, {"VCPU": (up, 9)}, runs, 1)


def test_samples_of_minutes_become_those_of_hours_and_are_bounded(tmp_path: Path) -> None:
    store = SampleStore(tmp_path)
    first = 1_790_000_000 // HOUR * HOUR
    for minute in range(1, 2 * MOST_MINUTES):
        store.add(sample(first + minute * MINUTE, up=minute))
    assert len(store.minutes) == MOST_MINUTES
    assert [(each.at, each.hosts[0], each.runs) for each in store.hours[:2]] == [
        (first + HOUR, 60, 120), (first + 2 * HOUR, 120, 120),
    ]  # fmt: skip
    for hour in range(MOST_HOURS + 50):
        store.add(sample(first + 10 * DAY + hour * HOUR + MINUTE))
    assert len(store.hours) == MOST_HOURS
    store.write(store.encoded())
    again = SampleStore(tmp_path)
    again.load()
    assert (again.minutes, again.hours) == (store.minutes, store.hours)


@pytest.mark.parametrize("damage", [b"", b"x", b"changed"])
def test_a_damaged_file_of_samples_is_begun_anew(tmp_path: Path, damage: bytes) -> None:
    store = SampleStore(tmp_path)
    store.add(sample(1_790_000_040))
    content = store.encoded()
    store.write(content[:-1] + bytes([content[-1] ^ 1]) if damage == b"changed" else damage)
    again = SampleStore(tmp_path)
    again.load()
    assert again.minutes == []


def test_gaps_between_samples_are_not_filled() -> None:
    samples = [sample(600), sample(660), sample(780)]
    assert [each and each.at for each in by_time(samples, range(600, 841, 60), 60)] == [
        600,
        660,
        None,
        780,
        None,
    ]


def test_decisions_are_filled_in_where_nobody_looked(tmp_path: Path) -> None:
    store = SampleStore(None)
    store.add(sample(660))
    store.fill([(600, 5, 1), (660, 99, 0)])
    assert [(each.at, each.runs) for each in store.minutes] == [(600, 5), (660, 2)]


def keys(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.uint64)


def states(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.uint8)


def test_states_are_those_of_the_last_look(tmp_path: Path) -> None:
    begin = 20_000.0 * DAY
    log = StateLog(tmp_path)
    log.look(begin + 60, keys(7, 5), states(0, 1))
    log.look(begin + 120, keys(5, 7), states(1, 2))
    log.look(begin + 180, keys(5, 7), states(1, 2))
    log.look(begin + 240, keys(5, 9), states(0, 2))
    asked = keys(5, 7, 8, 9)

    def told(at: float) -> list[int] | None:
        found = StateLog(tmp_path).states_at(begin + at, asked)
        return None if found is None else found.tolist()

    assert told(59) is None
    assert told(60) == told(119) == [1, 0, UNKNOWN, UNKNOWN]
    assert told(120) == told(200) == [1, 2, UNKNOWN, UNKNOWN]
    assert told(240) == [0, UNKNOWN, UNKNOWN, 2]
    assert told(240 + 1_000) is None, "nobody looked for a quarter of an hour"


def test_the_log_survives_a_kill_and_is_bounded(tmp_path: Path) -> None:
    begin = 20_000.0 * DAY
    StateLog(tmp_path).look(begin + 60, keys(1, 2), states(0, 2))
    [file] = tmp_path.iterdir()
    file.write_bytes(file.read_bytes() + bytes(ENTRY.itemsize - 3))
    log = StateLog(tmp_path)
    found = log.states_at(begin + 70, keys(1, 2))
    assert found is not None and found.tolist() == [0, 2]
    log.look(begin + 120, keys(1, 2), states(1, 1))
    found = log.states_at(begin + 130, keys(1, 2))
    assert found is not None and found.tolist() == [1, 1]
    for day in range(20):
        log.look(begin + day * DAY + 300, keys(1), states(0))
    assert len(list(tmp_path.iterdir())) <= KEPT_DAYS + 1


async def _ask_for(client: DashboardClient, count: int) -> None:
    body = {"flavor": {"vcpus": 1, "memory_mb": 512}, "count": count}
    answer = await client.http.post("/v1/instances", json=body, headers={"x-auth-token": "admin"})
    assert answer.status_code == 202, answer.text
    await client.system.settle()


def test_series_have_pages_and_numbers(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_dashboard(tmp_path, LAYOUT) as client:
            await _ask_for(client, 3)
            for of in ("use", "claims", "decisions", "hosts", "instances"):
                shown = await client.view(f"/ui/series?of={of}&span=hour")
                assert len(shown["x"]) == 60 and all(len(each["values"]) == 60 for each in shown["series"])
                page = await client.get(f"/ui/series?of={of}&span=hour")
                assert page.status_code == 200 and "data-chart=" in page.text
            assert (await client.get("/ui/series?class=CUSTOM_NONE")).status_code == 404
            assert (await client.get("/ui/series?of=nothing")).status_code == 400
            assert "data-chart-url" in (await client.get("/ui")).text

    asyncio.run(run())


def test_a_sampler_looks_at_hosts_instances_and_decisions(tmp_path: Path) -> None:
    async def run() -> None:
        async with dashboard_users(tmp_path) as users:
            log, store = StateLog(tmp_path / "past"), SampleStore(tmp_path / "past")
            past = PastReads(users.service.ledger, None, users.service.table, log, store)
            lane = Lane("samples")
            sampler = Sampler(replace(users.service, past=past), lane)
            await users.ask_for(count=2)
            await sampler.sample()
            [taken] = store.minutes
            at = round(users.service.clock() / MINUTE) * MINUTE
            assert taken.at == at and sum(taken.hosts) == len(users.service.table) > 0
            assert taken.instances is not None and sum(taken.instances.values()) == 2
            assert taken.use["VCPU"][0] == 2
            known = log.states_at(at + 30.0, await NodeKeys(users.service.table).keys())
            assert known is not None and UNKNOWN not in known
            await sampler.close()
            again = SampleStore(tmp_path / "past")
            again.load()
            assert again.minutes == [taken]
            await lane.close(None)

    asyncio.run(run())
