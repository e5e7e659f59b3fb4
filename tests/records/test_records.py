"""What every backend of records does."""

import asyncio
import itertools
import math

import msgspec
import pytest

from roost.model.reasons import Reasons, WeighedHost, WeigherNumber
from roost.model.record import BUILT, FAILED, Asked, PluginVersion, RunReasons, Settings
from roost.model.request import CandidateQuery, RequestGroup
from roost.model.spec import Destination, Selection
from roost.records import RecordRefused, Retention, RunWithAttempts, Search
from roost.records.rows import encoded

DAY = 86_400


def test_last_gives_back_what_was_written_newest_first(using, make, write):
    made = [make(0, tries=0), make(1, tries=3), make(2, instances=500)]

    async def use(records):
        await write(records, made)
        return await records.last(10), await records.last(2), await records.last(0)

    everything, two, none = using(use)
    assert everything == made[::-1]
    assert two == made[:0:-1]
    assert none == []


def test_records_outlive_the_process_that_wrote_them(using, make, write):
    using(lambda records: write(records, [make(1)]))
    using(lambda records: write(records, [make(2)]))
    assert using(lambda records: records.last(9)) == [make(2), make(1)]


def test_an_attempt_may_be_written_after_its_run_and_has_its_place(using, make):
    whole = make(1, tries=2)
    first, second = whole.attempts

    async def use(records):
        await records.write([encoded(whole.run)], [second])
        await records.write([encoded(make(2).run)], [])
        await records.write([], [first])
        return await records.last(9)

    newest, oldest = using(use)
    assert newest.attempts == ()
    assert oldest.attempts == (first, second)


def test_the_begin_and_the_first_end_of_an_attempt_are_one_in_any_order(using, make):
    """Another process may write the end before the scheduler's writes the run; ends may come twice."""
    wanted, turns = [], []
    for number, order in enumerate(itertools.permutations(range(4))):
        whole = make(number, tries=1)
        [begin] = whole.attempts
        end = msgspec.structs.replace(begin, at=7.0, weight=0.0, result=BUILT, finished_at=7.0)
        later = msgspec.structs.replace(end, result=FAILED, reason="no image", finished_at=8.0)
        writes = [([whole.run], []), ([], [begin]), ([], [end]), ([], [later])]
        turns.append([writes[place] for place in order])
        first = min(end, later, key=lambda each: order.index(2 if each is end else 3))
        ended = {name: getattr(first, name) for name in ("result", "reason", "finished_at")}
        wanted.append(RunWithAttempts(whole.run, (msgspec.structs.replace(begin, **ended),)))

    async def use(records):
        for turn in zip(*turns, strict=True):
            for runs, attempts in turn:
                await records.write([*map(encoded, runs)], attempts)
        return await records.last(99)

    assert sorted(using(use), key=lambda each: each.run.started_at) == wanted


def test_begin_and_end_in_one_write(using, make):
    whole = make(1, tries=1)
    [begin] = whole.attempts
    end = msgspec.structs.replace(begin, result=BUILT, finished_at=8.0)

    async def use(records):
        await records.write([encoded(whole.run)], [begin, end, begin, end])
        return await records.last(9)

    assert using(use)[0].attempts == (end,)


def test_everything_of_a_run_comes_back(using, make):
    settings = Settings(
        digest="d", roost="1", options={"a": [1, None]}, filters=(PluginVersion("F", "m", "1"),)
    )
    group = RequestGroup({"VCPU": 1}, "_a", required=(frozenset("AB"),), forbidden=frozenset("C"))
    query = CandidateQuery((group,), isolate=True, same_subtree=(frozenset("_a"),))
    selected = Selection("h", "n", "c", {"n": {"VCPU": 1}}, {"_a": ["n"]}, 1.5, ordinal=2)
    reasons = Reasons(sentence="all of 9 hosts are full", public="no host has room", hosts=9)
    run = msgspec.structs.replace(
        make(1).run,
        global_request_id="req-0",
        seed=2**63 - 1,
        node_version=7,
        position=3,
        journal="j",
        asked=Asked(query, (query,), 1000, 6),
        num_alternates=2,
        min_count=1,
        settings=settings,
        destinations=(Destination("run-1", "i", selected, (selected,)),),
        weighed=(WeighedHost("h", 1.5, (WeigherNumber("W", 1.0, 0.5, -1.0),)),),
    )
    other = msgspec.structs.replace(make(2).run, settings=settings, reasons=reasons)

    async def use(records):
        await records.write([encoded(run)], [])
        await records.write([encoded(other)], [])
        before = await records.last(9)
        await records.write([], [], [RunReasons("run-1", reasons), RunReasons("nobody", reasons)])
        return before, await records.last(9)

    before, after = using(use)
    assert [each.run for each in before] == [other, run]
    assert [each.run for each in after] == [other, msgspec.structs.replace(run, reasons=reasons)]
    assert [each.run for each in using(lambda records: records.last(9))] == [each.run for each in after]


def test_concurrent_writes_are_all_recorded(using, make, write):
    made = [make(number) for number in range(50)]

    async def use(records):
        await asyncio.gather(*(write(records, [one]) for one in made))
        return await records.last(100)

    assert using(use) == made[::-1]


def test_records_that_are_written_again_are_recorded_once(using, make, write):
    first, second, third = make(1), make(2), make(3)

    async def use(records):
        await write(records, [first, second])
        await write(records, [first, second])
        await write(records, [second, third])
        await records.write([], first.attempts)
        await records.write([], third.attempts[:1])
        return (
            await records.last(9),
            await records.find(Search(request_id="req-2")),
            await records.trim(now=9.0),
        )

    # Of the last two runs that were recorded neither is surplus.
    everything, found, gone = using(use, Retention(days=0, runs=3))
    assert sorted(everything, key=lambda one: one.run.id) == [first, second, third]
    assert found == [second]
    assert gone == 0


def test_runs_are_returned_in_the_order_in_which_they_were_recorded(using, make, write):
    made = [make(number, at=float(at)) for number, at in enumerate((5, 3, 9, 1))]

    async def use(records):
        await write(records, made)
        before = await records.last(9), await records.last(2)
        return *before, await records.trim(now=9.0), await records.last(9)

    everything, two, gone, left = using(use, Retention(days=0, runs=3))
    assert (everything, two) == (made[::-1], made[:1:-1])
    assert (gone, left) == (1, made[:0:-1])


def test_runs_are_found_by_request_and_by_instance(using, make, write):
    made = [make(number, instances=3) for number in range(5)]

    async def use(records):
        await write(records, made)
        return (
            await records.find(Search(request_id="req-3")),
            await records.find(Search(instance="instance-4-2")),
            await records.find(Search(request_id="req-1", instance="instance-1-0")),
            await records.find(Search(request_id="req-1", instance="instance-2-0")),
        )

    assert using(use) == ([made[3]], [made[4]], [made[1]], [])


def test_an_instance_is_found_though_nothing_was_tried_for_it(using, make, write):
    none, other = make(1, tries=0), make(2, instances=2)

    async def use(records):
        await write(records, [none, other])
        return await records.find(Search(instance="instance-1-0")), await records.find(
            Search(instance="instance-2-1")
        )

    assert using(use) == ([none], [other])


def test_find_gives_the_newest_up_to_its_limit(using, make):
    made = [make(number).run for number in range(5)]
    same = [msgspec.structs.replace(run, instances=("same",)) for run in made]

    async def use(records):
        await records.write([*map(encoded, same)], [])
        return await records.find(Search(instance="same"), 2)

    assert [one.run for one in using(use)] == same[:2:-1]


def test_writing_nothing_is_no_error(using):
    assert using(lambda records: records.write([], [])) is None


@pytest.mark.parametrize("change", [{"at": math.nan}, {"weight": math.inf}, {"result": "maybe"}])
def test_an_attempt_that_would_not_come_back_refuses_its_whole_write(using, make, change):
    one = make(1)

    async def use(records):
        with pytest.raises(RecordRefused, match="attempt on host-0 of run run-1"):
            await records.write([encoded(one.run)], [msgspec.structs.replace(one.attempts[0], **change)])
        return await records.last(9)

    assert using(use) == []


def test_a_run_without_finite_times_is_refused(using, make):
    run = msgspec.structs.replace(make(1).run, finished_at=math.inf)
    with pytest.raises(RecordRefused, match=r"run run-1: its times are 1.0 and inf"):
        using(lambda records: records.write([encoded(run)], []))


@pytest.mark.parametrize(
    ("retention", "kept"),
    [
        (Retention(days=0, runs=0), [5, 4, 3, 2, 1, 0]),
        (Retention(days=3, runs=0), [5, 4, 3, 2]),
        (Retention(days=0, runs=3), [5, 4, 3]),
        (Retention(days=3, runs=5), [5, 4, 3, 2]),
        (Retention(days=3, runs=1), [5]),
        (Retention(days=0.5, runs=2), [5]),
        (Retention(days=0.001, runs=0), []),
    ],
)
def test_trim_keeps_what_is_both_young_enough_and_among_the_newest(using, make, write, retention, kept):
    made = [make(number, at=float(number * DAY)) for number in range(6)]

    async def use(records):
        await write(records, made)
        gone = await records.trim(now=5 * DAY + 60 * 4 if retention.days == 0.001 else 5 * DAY)
        again = await records.trim(now=5 * DAY)
        await write(records, [make(6, at=float(6 * DAY))])
        return gone, again, await records.last(10)

    gone, again, left = using(use, retention)
    assert (gone, again) == (6 - len(kept), 0)
    assert [one.run.version for one in left] == [6, *kept]
    assert left[1:] == [made[number] for number in kept]


def test_trim_keeps_the_right_number_of_runs_that_started_together(using, make, write):
    made = [make(number, at=1.0) for number in range(6)]

    async def use(records):
        await write(records, made)
        return await records.trim(now=2.0), await records.last(9)

    assert using(use, Retention(days=0, runs=2)) == (4, made[:3:-1])


def test_an_attempt_that_comes_after_its_run_was_trimmed_harms_nothing(using, make, write):
    old, new = make(1), make(2 * DAY)

    async def use(records):
        await write(records, [old, new])
        assert await records.trim(now=2 * DAY) == 1
        await records.write([], [msgspec.structs.replace(old.attempts[0], at=2.0 * DAY, result=FAILED)])
        assert await records.trim(now=2 * DAY) == 0
        return await records.last(9)

    assert using(use, Retention(days=1, runs=0)) == [new]


def test_a_run_is_found_by_the_id_that_the_client_gave_its_request(using, make, write):
    known = make(1)
    known = msgspec.structs.replace(
        known, run=msgspec.structs.replace(known.run, global_request_id="req-of-client")
    )

    async def use(records):
        await write(records, [known, make(2)])
        return [
            await records.find(Search(request_id=name))
            for name in ("req-of-client", "req-1", "req-2", "None")
        ]

    by_global, by_own, other, none = using(use)
    assert by_global == by_own == [known]
    assert other == [make(2)] and none == []
