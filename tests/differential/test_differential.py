"""The same random operations on upstream's Placement and on Roost: the answers must say the same.

A failure names its seed, which makes the same operations again, and few operations that lead to it. Each
nightly run adds a number of its own to the seeds; see `support.seeds`.
"""

from pathlib import Path

import pytest

from differential.generator import Generator
from differential.known import KNOWN, PARTING
from differential.run import Both, shrink
from support.seeds import nightly_seed

OPERATIONS = 100
"""Of one seed; the first 40 of them fill the world."""

SEEDS = range(20)
MORE_SEEDS = range(1_000, 1_250)
DOCUMENT = Path(__file__).parents[2] / "docs" / "differences.md"


def check(both: Both, seed: int) -> None:
    generator = Generator(seed)
    done = []
    for _ in range(OPERATIONS):
        done.append(generator.next())
        found = both.run(done[-1])
        if both.parted:
            return
        if found is not None:
            few = "\n".join(f"    {operation}" for operation in shrink(both, done, found))
            pytest.fail(
                f"seed {seed}, after {len(done)} operations:\n{found}\nfrom nothing:\n{few}", pytrace=False
            )


@pytest.mark.parametrize("seed", SEEDS)
def test_random_operations_are_answered_alike(both: Both, seed: int) -> None:
    check(both, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_many_random_operations_are_answered_alike(both: Both, seed: int) -> None:
    check(both, seed + nightly_seed())


def test_every_known_difference_is_documented() -> None:
    text = DOCUMENT.read_text()
    assert [words for words in (*KNOWN, *PARTING) if words not in text] == []
