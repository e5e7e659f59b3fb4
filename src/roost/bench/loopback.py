"""Ports of the loopback address for servers of one's own."""

import contextlib
import random
import socket
from pathlib import Path

_LOWEST = 10_000
_DEALT_OUT = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Not the generator that a test may have seeded: two processes would be told the same ports.
_RANDOM = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody uses now.

    They are below those that the kernel deals out to connections, of which one could be taken before the
    server that it was meant for listens.
    """
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        for port in _RANDOM.sample(_candidates(), 1000):
            trial = stack.enter_context(socket.socket())
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
            if len(found) == count:
                return found
    raise OSError(f"no {count} free ports of 127.0.0.1 among 1,000 tried")


def free_port() -> int:
    """One of `free_ports`."""
    return free_ports(1)[0]


def _candidates() -> range:
    lowest_dealt_out = int(_DEALT_OUT.read_text().split()[0]) if _DEALT_OUT.exists() else 49_152
    if lowest_dealt_out - _LOWEST >= 1000:
        return range(_LOWEST, lowest_dealt_out)
    return range(_LOWEST, 65_536)
