"""Both backends find the same runs: those that a plain reading of the criteria says."""

import itertools

import msgspec
import pytest

from roost.model.record import BUILT, FAILED, PENDING, REFUSED
from roost.records import RunWithAttempts, Search, UnknownRun

PROJECTS = ("a", "b")
HOSTS = ("h1", "h2", "h3")
RESULTS = (PENDING, BUILT, FAILED, REFUSED)


@pytest.fixture
def made(make) -> list[RunWithAttempts]:
    """Runs of two projects, with attempts of all results on three hosts; some placed too few."""
    combinations = zip(range(24), itertools.cycle(itertools.product(HOSTS, RESULTS)), strict=False)
    found = []
    for number, (host, result) in combinations:
        whole = make(number, tries=0 if number % 6 == 5 else 2, instances=2, at=1000.0 * number)
        run = msgspec.structs.replace(
            whole.run,
            project_id=PROJECTS[number % 2],
            user_id=f"user-{number % 3}",
            request_id=f"req-{number // 2}",
            global_request_id=f"req-of-{number // 4}",
        )
        attempts = [
            msgspec.structs.replace(each, instance=run.instances[place], ordinal=1, request_id=run.request_id)
            for place, each in enumerate(whole.attempts)
        ]
        if attempts:
            at = None if result == PENDING else run.started_at + 5
            attempts[0] = msgspec.structs.replace(
                attempts[0], host=host, result=result, finished_at=at, reason=None
            )
        found.append(RunWithAttempts(run, tuple(attempts)))
    return found


def wanted(search: Search, each: RunWithAttempts) -> bool:
    run = each.run
    tried = [
        attempt
        for attempt in each.attempts
        if search.host in (None, attempt.host)
        and search.result in (None, attempt.result)
        and search.instance in (None, attempt.instance)
    ]
    return (
        (search.run is None or run.id == search.run)
        and (search.request_id is None or search.request_id in (run.request_id, run.global_request_id))
        and (search.instance is None or search.instance in run.instances)
        and (search.project_id is None or run.project_id == search.project_id)
        and (search.user_id is None or run.user_id == search.user_id)
        and (search.since is None or run.started_at >= search.since)
        and (search.until is None or run.started_at < search.until)
        and not (search.refused and run.refusal is None)
        and (bool(tried) or (search.host is None and search.result is None))
    )


CRITERIA = [
    {},
    {"run": "run-7"},
    {"request_id": "req-3"},
    {"request_id": "req-of-3"},
    {"instance": "instance-7-1"},
    {"instance": "instance-5-0"},
    {"host": "h1"},
    {"result": FAILED},
    {"host": "h2", "result": BUILT},
    {"host": "h2", "instance": "instance-4-0"},
    {"host": "h2", "instance": "instance-4-1"},
    {"host": "nobody"},
    {"project_id": "b"},
    {"user_id": "user-2", "project_id": "a"},
    {"since": 5000.0, "until": 9000.0},
    {"refused": True, "since": 6000.0},
    {"refused": True, "result": REFUSED},
    {"result": PENDING, "project_id": "a", "until": 20_000.0, "host": "h3"},
]


def test_a_search_gives_the_runs_that_meet_all_criteria_last_first(using, made, write):
    searches = [Search(**criteria) for criteria in CRITERIA]

    async def use(records):
        await write(records, made)
        return [await records.find(search) for search in searches]

    for search, found in zip(searches, using(use), strict=True):
        assert found == [each for each in reversed(made) if wanted(search, each)], search


def test_pages_go_on_where_the_one_before_ended(using, made, write):
    async def use(records):
        await write(records, made)
        pages, marker = [], None
        while True:
            page = await records.find(Search(project_id="a", before=marker), 5)
            if not page:
                break
            pages.append(page)
            marker = page[-1].run.id
        with pytest.raises(UnknownRun, match="no run nobody is recorded"):
            await records.find(Search(before="nobody"))
        everything = [each async for some in records.each(Search(project_id="a")) for each in some]
        return pages, everything

    pages, everything = using(use)
    assert everything == [each for each in reversed(made) if each.run.project_id == "a"]
    assert [len(page) for page in pages] == [5, 5, 2]
    assert [each for page in pages for each in page] == everything


def test_pages_have_each_run_once_where_runs_were_written_twice(using, made, write):
    """A write whose outcome is unknown is repeated. Pages used to begin again at the second copy of a run."""

    async def use(records):
        await write(records, made[:6])
        await write(records, made[2:5])
        pages, marker = [], None
        for _ in range(20):
            page = await records.find(Search(before=marker), 1)
            if not page:
                return pages
            pages.append(page)
            marker = page[-1].run.id
        raise AssertionError("the pages have no end")

    pages = using(use)
    assert sorted(each.run.id for [each] in pages) == sorted(each.run.id for each in made[:6])


def test_removed_runs_are_gone_with_their_attempts(using, made, write):
    async def use(records):
        await write(records, made)
        gone = await records.remove([each.run.id for each in made[3:9]] + ["nobody"])
        return gone, await records.remove(["nobody"]), await records.last(99)

    gone, nothing, left = using(use)
    assert (gone, nothing) == (6, 0)
    assert left == [*made[:3], *made[9:]][::-1]


def test_a_result_that_is_none_is_refused():
    with pytest.raises(ValueError, match="result is 'claimed', not one of pending, built"):
        Search(result="claimed")
