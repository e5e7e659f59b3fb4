"""Runs and attempts to record, and both backends to record them in."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from roost.model.record import PENDING, REFUSED, Attempt, Run, Step
from roost.model.spec import Flavor, Image, RequestSpec
from roost.records import Records, Retention, RunWithAttempts, redacted
from roost.records.backend import open_sql_records
from roost.records.jsonl import JsonLinesRecords
from roost.records.rows import encoded
from roost.records.tables import SCHEMA
from roost.storage import Database
from support.databases import Servers
from support.upgrading import upgrade_empty

T = TypeVar("T")

SPEC = RequestSpec(
    project_id="project",
    user_id="user",
    flavor=Flavor("m1.small", 1, 2048, 20, {"trait:HW_CPU_X86_AVX2": "required"}),
    required_traits=frozenset({"CUSTOM_B", "CUSTOM_A"}),
    image=Image(properties={"os_distro": "täst"}),
)


def make_run(number: int, tries: int = 2, instances: int = 1, at: float | None = None) -> RunWithAttempts:
    """``run-<number>``, started at that second unless ``at`` says otherwise; its last attempt is claimed."""
    started = float(number) if at is None else at
    names = tuple(f"instance-{number}-{place}" for place in range(instances))
    run = Run(
        id=f"run-{number}",
        request_id=f"req-{number}",
        project_id="project",
        user_id="user",
        instances=names,
        spec=redacted(SPEC),
        started_at=started,
        finished_at=started + 0.25,
        version=number,
        steps=(Step("hosts", 10), Step("ComputeFilter", tries)),
        refusal=None if tries else "no valid host",
    )
    return RunWithAttempts(run, tuple(make_attempt(run, place, tries) for place in range(tries)))


def make_attempt(run: Run, place: int, tries: int) -> Attempt:
    last = place == tries - 1
    return Attempt(
        run=run.id,
        request_id=run.request_id,
        instance=run.instances[0],
        at=run.started_at + 0.1 + place / 100,
        host=f"host-{place}",
        cell="cell1",
        weight=1.5,
        result=PENDING if last else REFUSED,
        reason=None if last else "line one\nline two",
        ordinal=place + 1,
        node=f"node-{place}",
        finished_at=None if last else run.started_at + 0.1 + place / 100,
    )


async def write_all(records: Records, made: list[RunWithAttempts]) -> None:
    await records.write(
        [encoded(one.run) for one in made], [attempt for one in made for attempt in one.attempts]
    )


@pytest.fixture
def make() -> Callable[..., RunWithAttempts]:
    return make_run


@pytest.fixture
def write() -> Callable[[Records, list[RunWithAttempts]], Awaitable[None]]:
    return write_all


Use = Callable[[Records], Awaitable[T]]
Using = Callable[..., T]


def _using_database(url: str) -> Using[T]:
    database = Database(url)
    upgrade_empty(SCHEMA, database)
    asyncio.run(database.close())

    def using(use: Use[T], retention: Retention | None = None) -> T:
        async def run() -> T:
            records = await open_sql_records(url, retention or Retention(0, 0))
            try:
                return await use(records)
            finally:
                await records.close()

        return asyncio.run(run())

    return using


@pytest.fixture
def using_sql(database_url: str) -> Using[T]:
    """Runs a function of the records in an event loop; the database stays from one call to the next."""
    return _using_database(database_url)


@pytest.fixture
def using_jsonl(tmp_path: Path) -> Using[T]:
    """Runs a function of the records in an event loop; the file stays from one call to the next."""

    def using(use: Use[T], retention: Retention | None = None) -> T:
        async def run() -> T:
            records = JsonLinesRecords(tmp_path / "records.jsonl", retention or Retention(0, 0))
            try:
                return await use(records)
            finally:
                await records.close()

        return asyncio.run(run())

    return using


@pytest.fixture(params=["jsonl", "sqlite", "postgresql", "mariadb"])
def using(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Using[T]]:
    """Every backend."""
    if request.param == "jsonl":
        yield request.getfixturevalue("using_jsonl")
        return
    with servers.place(request.param, tmp_path) as place:
        yield _using_database(place.url)
