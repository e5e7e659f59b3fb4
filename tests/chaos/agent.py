"""Runs ``roost`` with a clock that is off: ``python agent.py SECONDS ARGUMENTS…``."""

import sys
import time


def shift(seconds: float) -> None:
    """Have everything in this process read a clock that is off."""
    right = time.time
    time.time = lambda: right() + seconds


if __name__ == "__main__":
    # Before anything is imported that keeps the function.
    shift(float(sys.argv.pop(1)))
    from roost.bench.server_process import die_with_parent
    from roost.cli.main import main

    die_with_parent()
    sys.argv[0] = "roost"
    main()
