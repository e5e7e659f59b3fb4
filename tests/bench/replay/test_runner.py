"""A replay: every instance is accounted for, the same seed does the same, a cut is not seen in the totals."""

import asyncio
from pathlib import Path

import msgspec
import numpy as np
import pytest

from roost.bench.errors import ReplayError
from roost.bench.replay import synthetic
from roost.bench.replay.runner import WorkloadReplay, layout_of
from roost.bench.replay.state import ReplayState, open_state, save_state
from roost.bench.replay.summary import Summary
from roost.bench.replay.workload import Bin, Host, Workload, WorkloadHostTree, WorkloadRequest, into_bins
from roost.model.instance import ACTIVE, ERROR
from roost.model.spec import Flavor
from roost.scheduler import SchedulerOptions
from support.systems import differences, opened_system

PARAMETERS = {"workload": "test"}
PLAIN = SchedulerOptions(explain_seconds=0.0)
"""As `roost replay` has it: refusals are counted by their plain reason."""
HOSTS = tuple(Host(f"host-{number}", WorkloadHostTree({"VCPU": 4, "MEMORY_MB": 4096})) for number in range(4))


def asked(at: int, *lifetimes: int | None, vcpus: int = 1) -> WorkloadRequest:
    return WorkloadRequest(at, "project", Flavor(f"v{vcpus}", vcpus, 256), lifetimes)


def workload(*requests: WorkloadRequest) -> Workload:
    return Workload("test", HOSTS, into_bins(requests))


def busy(every: int = 100) -> Workload:
    """More than fits, of instances that live for no time, for some bins, and to the end."""
    return workload(
        *(asked(at, 0, at % 700, None, 301, vcpus=vcpus) for at in range(0, 3000, every) for vcpus in (1, 2))
    )


def one_by_one(work: Workload) -> Workload:
    """The workload with a bin for each request, at least a second after the one before.

    Requests of one bin race: in which order they are decided is up to the machine.
    """
    bins: list[Bin] = []
    for request in (request for bin_ in work.bins for request in bin_.requests):
        start = max(request.at, bins[-1].start + 1 if bins else 0)
        bins.append(Bin(start, (request,)))
    return msgspec.structs.replace(work, bins=bins)


BUSY = busy()
SERIAL = one_by_one(busy(300))


class Cut(Exception):
    """The replay is cut off here."""


async def replay(
    directory: Path, work: Workload, cut_after: int | None = None, failure_rate: float = 0.0
) -> Summary:
    state = open_state(directory, PARAMETERS, fresh=False)
    save_state(directory, state)

    def on_bin(done: int) -> None:
        if done == cut_after:
            raise Cut

    async with opened_system(directory, layout_of(work, 2), failure_rate, scheduler=PLAIN) as system:
        return await WorkloadReplay(work, system, state, seed=7).run(on_bin)


async def placements(directory: Path, work: Workload) -> dict[str, str | None]:
    """The host of each instance that is left."""
    async with opened_system(directory, layout_of(work, 2), scheduler=PLAIN) as system:
        return {each.uuid: each.host for cell in system.cells.values() for each in await cell.every()}


def figures(summary: Summary) -> dict[str, object]:
    """What does not depend on the machine."""
    names = ("requests", "asked", "placed", "placed_on_alternate", "failed", "refusals", "departures")
    return {name: getattr(summary, name) for name in (*names, "peak_use")}


@pytest.mark.parametrize("failure_rate", [0.0, 0.3])
def test_every_instance_is_accounted_for(tmp_path, failure_rate) -> None:
    summary = asyncio.run(replay(tmp_path, BUSY, failure_rate=failure_rate))
    assert summary.asked == BUSY.instances == summary.placed + summary.failed + summary.refused
    assert summary.unaccounted == 0
    assert summary.decisions == summary.asked
    assert summary.placed > 0 < summary.refused
    assert (summary.placed_on_alternate + summary.failed > 0) == (failure_rate > 0)
    assert asyncio.run(differences(tmp_path)) == []
    state = msgspec.json.decode((tmp_path / "replay.json").read_bytes(), type=ReplayState)
    assert state.finished
    samples = state.samples
    assert (sum(samples.placed), sum(samples.refused), sum(samples.failed)) == (
        summary.placed,
        summary.refused,
        summary.failed,
    )


def test_departures_are_at_the_start_of_a_bin_and_free_their_room(tmp_path) -> None:
    work = workload(asked(0, *[300] * 8, vcpus=2), asked(300, *[None] * 8, vcpus=2), asked(600, 1, vcpus=2))
    summary = asyncio.run(replay(tmp_path, work))
    assert (summary.placed, summary.departures) == (16, 8)
    assert summary.refusals == {"placement has no candidates on the hosts that are known": 1}
    assert summary.peak_use["VCPU"] == 1.0


def test_same_seed_and_workload_are_the_same_placements(tmp_path) -> None:
    work = one_by_one(synthetic.generate(np.random.default_rng(3)).first(3, None))
    found, summaries = [], []
    for name in ("one", "two"):
        summaries.append(figures(asyncio.run(replay(tmp_path / name, work))))
        found.append(asyncio.run(placements(tmp_path / name, work)))
    assert summaries[0] == summaries[1]
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.parametrize("cut_after", [1, 11])
def test_replay_that_was_cut_off_has_the_same_totals(tmp_path, cut_after) -> None:
    whole = asyncio.run(replay(tmp_path / "whole", SERIAL))
    with pytest.raises(Cut):
        asyncio.run(replay(tmp_path / "cut", SERIAL, cut_after))
    resumed = asyncio.run(replay(tmp_path / "cut", SERIAL))
    assert figures(resumed) == figures(whole)
    assert asyncio.run(placements(tmp_path / "cut", SERIAL)) == asyncio.run(
        placements(tmp_path / "whole", SERIAL)
    )


def test_replay_that_was_cut_off_within_a_bin_counts_it_once(tmp_path) -> None:
    whole = asyncio.run(replay(tmp_path / "whole", SERIAL))
    with pytest.raises(Cut):
        asyncio.run(replay(tmp_path / "cut", SERIAL, cut_after=8))
    # As if it had been cut off after the bin's work and before its end was kept.
    before = msgspec.json.decode((tmp_path / "cut" / "replay.json").read_bytes(), type=ReplayState)
    with pytest.raises(Cut):
        asyncio.run(replay(tmp_path / "cut", SERIAL, cut_after=9))
    save_state(tmp_path / "cut", before)
    assert figures(asyncio.run(replay(tmp_path / "cut", SERIAL))) == figures(whole)


def test_speed_paces_what_is_left_only(tmp_path) -> None:
    work = workload(asked(0, None), asked(60_000, None), asked(60_300, None))
    with pytest.raises(Cut):
        asyncio.run(replay(tmp_path, work, cut_after=1))

    async def run() -> float:
        state = open_state(tmp_path, PARAMETERS, fresh=False)
        async with opened_system(tmp_path, layout_of(work, 2), scheduler=PLAIN) as system:
            return (await WorkloadReplay(work, system, state, seed=7, speed=1000.0).run()).wall_seconds

    assert 0.3 <= asyncio.run(run()) < 50  # the whole takes a minute


def test_layout_is_where_the_workload_says_else_in_turn() -> None:
    hosts = (HOSTS[0], msgspec.structs.replace(HOSTS[1], cell=0), *HOSTS[2:])
    layout = layout_of(Workload("test", hosts, ()), 2)
    names = {cell: [there.host.name for there in found] for cell, found in layout.cells.items()}
    assert names == {"cell1": ["host-0", "host-1", "host-2"], "cell2": ["host-3"]}


def test_states_that_instances_end_in(tmp_path) -> None:
    async def run() -> set[str]:
        await replay(tmp_path, BUSY, failure_rate=0.3)
        async with opened_system(tmp_path, layout_of(BUSY, 2)) as system:
            return {each.state for cell in system.cells.values() for each in await cell.every()}

    assert asyncio.run(run()) <= {ACTIVE, ERROR}


def test_finished_replay_is_replaced_and_an_unfinished_one_goes_on(tmp_path) -> None:
    save_state(tmp_path, ReplayState(PARAMETERS, next_bin=3))
    assert open_state(tmp_path, PARAMETERS, fresh=False).next_bin == 3
    assert open_state(tmp_path, PARAMETERS, fresh=True).next_bin == 0
    save_state(tmp_path, ReplayState(PARAMETERS, next_bin=3, finished=True))
    for name in ("api.db", "api.db-wal", "layout.json"):
        (tmp_path / name).write_text("")
    assert open_state(tmp_path, PARAMETERS, fresh=False) == ReplayState(PARAMETERS)
    assert list(tmp_path.iterdir()) == []


def test_directory_of_something_else_is_left_alone(tmp_path) -> None:
    (tmp_path / "api.db").write_text("precious")
    with pytest.raises(ReplayError, match=r"contains api\.db, which is not of a replay"):
        open_state(tmp_path, PARAMETERS, fresh=True)
    save_state(tmp_path, ReplayState({"workload": "other", "seed": "1"}, next_bin=3))
    with pytest.raises(ReplayError, match="seed 1 and not None, workload other and not test"):
        open_state(tmp_path, PARAMETERS, fresh=False)
    (tmp_path / "replay.json").write_text("{")
    with pytest.raises(ReplayError, match=r"cannot read .*replay\.json"):
        open_state(tmp_path, PARAMETERS, fresh=True)
    assert (tmp_path / "api.db").read_text() == "precious"


def test_state_that_cannot_be_kept_is_said_in_one_line(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReplayError, match="file cannot be used"):
        save_state(tmp_path / "file", ReplayState(PARAMETERS))
