"""The writer tells the watch of the event loop which command held it."""

import asyncio
import time
from pathlib import Path

from roost.ledger import Command, State
from roost.placement.commands.providers import CreateProvider
from roost.process.loop_watch import LoopWatch, watching
from support.ledgers import opened


class SlowDecision(Command[None], frozen=True):
    """A command that takes 50 ms."""

    def run(self, state: State) -> None:
        time.sleep(0.05)


def test_a_command_that_holds_the_event_loop_is_named_and_not_the_writer(tmp_path: Path, monkeypatch) -> None:
    held: dict[str, float] = {}
    note = LoopWatch.note

    def noted(watch: LoopWatch, operation: str, seconds: float) -> None:
        held[operation] = held.get(operation, 0.0) + seconds
        note(watch, operation, seconds)

    monkeypatch.setattr(LoopWatch, "note", noted)

    async def use() -> None:
        async with opened(tmp_path / "ledger.db") as [ledger]:
            with watching():
                commands = [SlowDecision(), CreateProvider("p", "name of p")]
                await asyncio.gather(*map(ledger.execute, commands))

    asyncio.run(use())
    assert held["SlowDecision"] >= 0.05
    assert "CreateProvider" not in held
    # On a loaded machine the rest of the step may be long, too.
    assert held.get("Writer._drain", 0.0) < held["SlowDecision"]
