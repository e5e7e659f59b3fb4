"""Free ports of the loopback address, for servers of benchmarks and tests.

A port is given out before its server listens, and again while its server is down and starts anew. So each
process draws from a block of ports of its own. The first port of a block is bound as long as its process
lives, which keeps the block from other processes.
"""

import contextlib
import itertools
import os
import random
import socket
from collections.abc import Sequence
from pathlib import Path

_LOWEST = 10_000
_BLOCK = 500
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Not the default generator: tests seed it, and two processes would then try the same blocks first.
_RANDOM = random.SystemRandom()


class _Block:
    """Ports that no other process draws. Raises `OSError` if all blocks are taken."""

    def __init__(self) -> None:
        for lowest in _RANDOM.sample(_blocks(), len(_blocks())):
            with contextlib.suppress(OSError), socket.socket() as lock:
                lock.bind(("127.0.0.1", lowest))
                # It is the kernel's from now on: at the end of the process nobody closes it.
                self._lock = lock.detach()
                # The port that was drawn the longest time ago is drawn again first.
                self._turns = itertools.cycle(range(lowest + 1, lowest + _BLOCK))
                return
        raise OSError(f"all blocks of {_BLOCK} ports of 127.0.0.1 are taken")

    def draw(self, count: int) -> list[int]:
        """Return different ports that are not in use. Raises `OSError` if the block has too few."""
        turn = itertools.islice(self._turns, _BLOCK - 1)
        found = list(itertools.islice(filter(_is_free, turn), count))
        if len(found) < count:
            raise OSError(f"no {count} free ports in a block of {_BLOCK} of 127.0.0.1")
        return found

    def leave(self) -> None:
        """Leave the block to the process that this one was forked from."""
        os.close(self._lock)


_mine: _Block | None = None


def free_ports(count: int) -> list[int]:
    """Return different ports of 127.0.0.1 that are not in use.

    They are outside the kernel's range for outgoing connections, so that no connection takes a port before
    its server listens. No other process that calls this function gets them, and this one not soon again.

    Raises:
        OSError: Too few ports are free.
    """
    global _mine
    if _mine is None:
        _mine = _Block()
    return _mine.draw(count)


def free_port() -> int:
    """Return one port of `free_ports`."""
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    with contextlib.closing(socket.socket()) as trial:
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _blocks() -> Sequence[int]:
    """The first port of each block."""
    lowest_ephemeral = int(_EPHEMERAL_RANGE.read_text().split()[0]) if _EPHEMERAL_RANGE.exists() else 49_152
    end = lowest_ephemeral if lowest_ephemeral - _LOWEST >= 20 * _BLOCK else 65_536
    return range(_LOWEST, end - _BLOCK + 1, _BLOCK)


def _after_fork() -> None:
    global _mine
    if _mine is not None:
        _mine.leave()
        _mine = None


os.register_at_fork(after_in_child=_after_fork)
