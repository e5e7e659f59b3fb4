"""A command at its deadline: one that was not begun never is, of one that was the outcome is unknown."""

import asyncio
from typing import Any

from roost.process.deadlines import Deadlines
from roost.storage import DatabaseUnavailable, OutcomeUnknown
from support.ledgers import claim, findings_in, holdings_of, host, opened, run


def test_a_command_that_waited_in_vain_is_never_carried_out(tmp_path, monkeypatch) -> None:
    async def use() -> None:
        async with opened(tmp_path / "roost.db") as [ledger]:
            await run(ledger, *host("p", VCPU=10))
            write, go, begun = ledger.database.write, asyncio.Event(), asyncio.Event()

            async def held(work: Any) -> Any:
                begun.set()
                await go.wait()
                return await write(work)

            monkeypatch.setattr(ledger.database, "write", held)
            monkeypatch.setattr(ledger.database, "no_answer", lambda: "no answer")
            monkeypatch.setattr(ledger._follower, "deadlines", Deadlines(0.05))
            first = asyncio.create_task(ledger.execute(claim("begun", "p", VCPU=1)))
            await begun.wait()
            second = asyncio.create_task(ledger.execute(claim("waiting", "p", VCPU=1)))
            outcomes = await asyncio.gather(first, second, return_exceptions=True)
            go.set()
            assert [type(each) for each in outcomes] == [OutcomeUnknown, DatabaseUnavailable]
            assert [each.outcome_known for each in outcomes] == [False, True]  # type: ignore[union-attr]
            monkeypatch.undo()
            await ledger.execute(claim("after", "p", VCPU=1))
            assert holdings_of(ledger.database).keys() == {"begun", "after"}

    asyncio.run(use())
    assert findings_in(tmp_path / "roost.db") == []
