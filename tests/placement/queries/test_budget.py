"""Queries beside claims: answers are the same wherever they are computed, and claims go on."""

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.fleet import Fleet
from roost.fleet.errors import TooMuchWork
from roost.fleet.work import WorkBudget
from roost.ledger import Ledger
from roost.placement.queries import QueryBudget, TooExpensive
from roost.placement.queries import budget as budgets
from roost.placement.queries.budget import UNITS_ALONE, UNITS_BESIDE_WRITES
from roost.placement.queries.forked import ForkedUnavailable
from roost.web.admission import Overloaded
from roost.web.errors import BadRequest, Unavailable
from roost.web.limits import MIB, Limits
from support.ledgers import claim, host, opened, run
from support.placement_api import Api, uuid_of

HOST = uuid_of("host")


def fine(fleet: Fleet) -> None:
    """No query is refused."""


def costing(units: int) -> Any:
    def compute(fleet: Fleet) -> bytes:
        fleet.meter.spend(units)
        return str(fleet.version).encode()

    return compute


def endless(fleet: Fleet) -> bytes:
    while True:
        fleet.meter.spend(UNITS_ALONE)


@pytest.mark.parametrize("units", [1, UNITS_BESIDE_WRITES + 1, UNITS_ALONE + 1])
def test_every_query_reads_the_commits_before_it(tmp_path: Path, units: int) -> None:
    async def check() -> None:
        async with opened(tmp_path / "ledger.db") as [ledger]:
            budget = QueryBudget(ledger, Limits())
            await run(ledger, *host(HOST, VCPU=100))
            for number in range(5):
                await run(ledger, claim(uuid_of(f"c{number}"), HOST, VCPU=1))
                expected = str((await ledger.current()).version).encode()
                assert await budget.answer("query", fine, costing(units)) == expected

    asyncio.run(check())


def test_claims_go_on_beside_queries_that_never_end(tmp_path: Path) -> None:
    async def check() -> None:
        async with opened(tmp_path / "ledger.db") as [ledger]:
            await run(ledger, *host(HOST, VCPU=1000))
            budget = QueryBudget(ledger, Limits(query_processes=1, query_waiting=2, query_seconds=120.0))
            flood = [asyncio.ensure_future(budget.answer("query", fine, endless)) for _ in range(20)]
            for number in range(50):
                await run(ledger, claim(uuid_of(f"c{number}"), HOST, VCPU=1))
            done = [each for each in flood if each.done()]
            assert len(done) == 20 - 1 - 2
            assert all(isinstance(each.exception(), Overloaded) for each in done)
            for each in flood:
                each.cancel()
            await asyncio.gather(*flood, return_exceptions=True)
            # All places are free again.
            assert await budget.answer("other", fine, costing(UNITS_ALONE + 1))

    asyncio.run(check())


def test_a_query_that_takes_too_long_or_too_much_is_refused_and_a_waiting_one_may_try_again(
    tmp_path: Path,
) -> None:
    def large(fleet: Fleet) -> bytes:
        fleet.meter.spend(UNITS_ALONE + 1)
        return bytes(256 * MIB)

    async def check() -> None:
        async with opened(tmp_path / "ledger.db") as [ledger]:
            brief = QueryBudget(ledger, Limits(query_seconds=1.0))
            with pytest.raises(TooExpensive, match="seconds"):
                await brief.answer("endless", fine, endless)
            budget = QueryBudget(ledger, Limits(query_seconds=120.0, query_bytes=32 * MIB))
            with pytest.raises(TooExpensive, match="bytes"):
                await budget.answer("large", fine, large)

    asyncio.run(check())


def test_a_query_that_the_fleet_refuses_is_not_computed(tmp_path: Path) -> None:
    def refuse(fleet: Fleet) -> None:
        raise BadRequest("unknown")

    async def check() -> None:
        async with opened(tmp_path / "ledger.db") as [ledger]:
            budget = QueryBudget(ledger, Limits())
            for _ in range(2):
                with pytest.raises(BadRequest, match="unknown"):
                    await budget.answer("query", refuse, endless)

    asyncio.run(check())


def test_the_answer_to_an_expensive_query_is_the_whole_one(tmp_path: Path) -> None:
    """It has 13,440 candidates of four providers each, more than is computed beside claims."""
    api = Api(tmp_path)
    try:
        for tree in range(40):
            api.provider(f"r{tree}", VCPU=8)
            for device in range(8):
                api.provider(f"d{tree}.{device}", f"r{tree}", SRIOV_NET_VF=8)
        query = "/allocation_candidates?resources=VCPU:1"
        query += "".join(f"&resources_F{n}=SRIOV_NET_VF:1" for n in range(3)) + "&group_policy=isolate"
        found = api.get(query)["allocation_requests"]
        assert len(found) == 40 * 8 * 7 * 6
        assert len({msgspec.json.encode(each, order="deterministic") for each in found}) == len(found)
        assert found[:1000] == api.get(f"{query}&limit=1000")["allocation_requests"]
    finally:
        api.close()


def lasting(seconds: float) -> Any:
    def compute(fleet: Fleet) -> bytes:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass
        return b"found"

    return compute


@pytest.mark.parametrize("number, seconds", [(40, 0.0025), (50, 0.008)])
def test_a_burst_of_queries_after_a_write_is_answered(tmp_path: Path, number: int, seconds: float) -> None:
    async def check() -> None:
        async with opened(tmp_path / "ledger.db") as [ledger]:
            budget = QueryBudget(ledger, Limits())
            await run(ledger, *host(HOST, VCPU=100))
            burst = (budget.answer("query", fine, lasting(seconds)) for _ in range(number))
            assert await asyncio.gather(*burst) == [b"found"] * number

    asyncio.run(check())


def test_queries_are_answered_beside_some_writes(tmp_path: Path) -> None:
    """Two writes and 200 queries of 2.5 ms in each second need half of a processor."""

    async def check() -> None:
        async with opened(tmp_path / "ledger.db") as [ledger]:
            budget = QueryBudget(ledger, Limits())
            await run(ledger, *host(HOST, VCPU=100))
            queries = []
            for number in range(200):
                if number % 100 == 0:
                    await run(ledger, claim(uuid_of(f"c{number}"), HOST, VCPU=1))
                queries.append(asyncio.ensure_future(budget.answer("query", fine, lasting(0.0025))))
                await asyncio.sleep(0.005)
            assert await asyncio.gather(*queries) == [b"found"] * 200

    asyncio.run(check())


def test_a_query_is_refused_before_the_database_is_read_for_it_and_a_waiting_one_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check() -> None:
        async with opened(tmp_path / "ledger.db") as [ledger]:
            budget = QueryBudget(ledger, Limits(query_waiting=1, query_seconds=1.0, query_share=0.01))
            monkeypatch.setattr(Ledger, "waiting_commands", 1)
            await budget.answer("query", fine, lasting(0.1))
            waiting = asyncio.ensure_future(budget.answer("query", fine, lasting(0.0)))
            await asyncio.sleep(0)
            monkeypatch.setattr(Ledger, "current", None)
            with pytest.raises(Overloaded):
                await budget.answer("query", fine, lasting(0.0))
            with pytest.raises(Overloaded):
                await waiting

    asyncio.run(check())


def test_a_query_without_a_process_may_try_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_process(*_: object) -> bytes:
        raise ForkedUnavailable("no process")

    async def check() -> None:
        async with opened(tmp_path / "ledger.db") as [ledger]:
            monkeypatch.setattr(budgets, "run_forked", no_process)
            with pytest.raises(Unavailable, match="no process"):
                await QueryBudget(ledger, Limits()).answer("query", fine, endless)

    asyncio.run(check())


def test_a_search_counts_its_steps() -> None:
    work = WorkBudget(2)
    work.spend(2)
    with pytest.raises(TooMuchWork):
        work.spend(1)


def test_what_is_last_written_is_known(tmp_path: Path) -> None:
    async def check() -> tuple[float, float]:
        async with opened(tmp_path / "ledger.db") as [ledger]:
            before = _last(ledger)
            await run(ledger, *host(HOST, VCPU=1))
            return before, _last(ledger)

    before, after = asyncio.run(check())
    assert 0 < before < after


def _last(ledger: Ledger) -> float:
    return ledger.last_command
