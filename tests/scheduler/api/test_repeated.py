"""Claims that are known from the records, whose answers were lost."""

import asyncio
from pathlib import Path

from roost.model.record import Run
from roost.model.spec import Destination, Selection
from roost.records import RecordQueue, Retention
from roost.records.sql import SqlRecords
from roost.scheduler.api.repeated import recorded_claims
from roost.storage import Database

INSTANCE = "155d900f-4e14-4e4c-a73d-069cbf4541e7"


def run(name: str, at: float, generation: int | None) -> Run:
    """A run that chose a host; with a generation it claimed it."""
    chosen = Selection("host", "node", "cell", {}, {}, 1.0, generation=generation)
    return Run(
        id=name,
        request_id="req-1",
        project_id="p",
        user_id="u",
        instances=(INSTANCE,),
        spec={},
        started_at=at,
        finished_at=at,
        version=None,
        destinations=(Destination(name, INSTANCE, chosen),),
    )


def test_a_later_run_that_claimed_nothing_is_passed_over(tmp_path: Path) -> None:
    async def main() -> None:
        backend = SqlRecords(Database(f"sqlite:///{tmp_path / 'records.db'}"), Retention())
        records = RecordQueue(backend)
        try:
            records.put([run("shadow", 2.0, None)], [])
            assert await records.flush(10.0)
            assert await recorded_claims(backend, (INSTANCE,)) is None
            records.put([run("claimed", 1.0, 1)], [])
            assert await records.flush(10.0)
            found = await recorded_claims(backend, (INSTANCE,))
            assert found is not None and [each.run for each in found] == ["claimed"]
        finally:
            await records.close()

    asyncio.run(main())
