"""Running many schedules, and what is said of one that breaks a promise."""

import re
from collections.abc import Callable, Iterable

from support.simulation.network import BrokenPromise
from support.simulation.world import World

STORY_LINES = 150
"""Lines of the trace that are printed of a schedule that breaks a promise."""


def simulate(make: Callable[[int], World], seeds: Iterable[int], name: str) -> None:
    """Run a schedule for each seed. Raises: `BrokenPromise`, with the seed and the end of the story."""
    for seed in seeds:
        world = make(seed)
        try:
            world.run()
        except BrokenPromise as broken:
            story = world.network.story(re.findall(r"\binstance\d+", str(broken)), STORY_LINES)
            raise BrokenPromise(f"{broken} ({name}, seed {seed})\n{story}") from broken


def finds(make: Callable[[int], World], seeds: Iterable[int]) -> str:
    """The first promise that is broken; empty if none is."""
    for seed in seeds:
        try:
            make(seed).run()
        except BrokenPromise as broken:
            return str(broken)
    return ""
