"""The pictured cloud as a process, which is run with the folder of its databases.

It prints the URL when everything has happened.
"""

import asyncio
import random
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Final

from roost.bench.server_process import die_with_parent
from roost.ledger import draft
from roost.server.all_in_one.system import System
from screenshots.pictured_day import SCRIPT, PicturedDay
from screenshots.pictured_layout import pictured_layout
from support.shown_cloud.server import run
from support.shown_cloud.storyteller import SteppedClock

HEARTBEAT_SECONDS: Final = 2.0
"""Seconds between two reports of an agent: the pictures wait for some of them."""


def hide_machine() -> None:
    """Take away what the pages would show of this machine: its speed and its disk."""
    # Each command is a commit of its own, so that the numbers of commits do not depend on how many wait.
    draft.BATCH_SECONDS = -1.0
    half = SimpleNamespace(total=2**40, used=2**39, free=2**39)
    shutil.disk_usage = lambda path: half  # type: ignore[assignment, return-value]
    random.seed(7)


async def tell(system: System, clock: SteppedClock) -> None:
    """Let everything happen in the cloud."""
    await PicturedDay(system, clock).tell()


if __name__ == "__main__":
    die_with_parent()
    hide_machine()
    asyncio.run(run(Path(sys.argv[1]), pictured_layout(), SCRIPT, tell, HEARTBEAT_SECONDS))
