"""A writer that is killed at any moment has lost nothing that it said was done."""

import asyncio
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.databases import Place
from support.ledgers import findings_in, holdings_of, host, loaded, opened, run, whole
from support.seeds import nightly_seed

TESTS = Path(__file__).parents[1]


def killed_after(url: str, prefix: str, seconds: float) -> list[str]:
    """What a writer said before it was killed so long after its first word."""
    command = [sys.executable, "-m", "support.claiming", url, prefix]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(seconds)
        writer.kill()
        said, _ = writer.communicate()
    lines = (first + said).splitlines(keepends=True)
    # The last word may be cut off.
    return [line.rstrip("\n") for line in lines if line.endswith("\n")]


def killed_over_and_over(place: Place, rounds: int, seed: int) -> None:
    draw = random.Random(seed)

    async def prepare() -> None:
        async with opened(place) as [ledger]:
            await run(ledger, *host("p", VCPU=2**30))

    async def check(said: list[str]) -> None:
        async with opened(place) as [ledger]:
            held = holdings_of(ledger.database)
            claimed = {line[2:] for line in said if line[0] == "+"}
            freed = {line[2:] for line in said if line[0] == "-"}
            assert freed.isdisjoint(held)
            # One whose freeing was under way may be gone without a word of it; see claiming.py.
            lost = {name for name in claimed - freed - held.keys() if int(name.split("-")[-1]) % 3}
            assert not lost
            # The dead one's last commit may still come, between the two.
            while (followed := whole(await ledger.current())) != (tables := loaded(ledger.database)):
                assert followed["version"] != tables["version"]

    asyncio.run(prepare())
    said: list[str] = []
    for number in range(rounds):
        said += killed_after(place.at(number), f"r{number}", draw.uniform(0.0, 0.3))
        assert findings_in(place) == []
        asyncio.run(check(said))
    assert len(said) > rounds * 20


def test_a_killed_writer_loses_nothing_that_it_acknowledged(place):
    killed_over_and_over(place, 5 if place.kind == "sqlite" else 2, seed=5)


@pytest.mark.nightly
def test_a_killed_writer_loses_nothing_that_it_acknowledged_at_length(place):
    killed_over_and_over(place, 100 if place.kind == "sqlite" else 25, nightly_seed())
