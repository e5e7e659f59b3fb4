"""Free ports of the loopback address, for servers of benchmarks and tests."""

import contextlib
import random
import socket
from pathlib import Path

_LOWEST = 10_000
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Not the default generator: tests seed it, and two processes would then draw the same ports.
_RANDOM = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """Return different ports of 127.0.0.1 that are not in use.

    They are outside the kernel's range for outgoing connections, so that no connection takes a port before
    its server listens.

    Raises:
        OSError: Too few of 1,000 random ports are free.
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
    """Return one port of `free_ports`."""
    return free_ports(1)[0]


def _candidates() -> range:
    lowest_ephemeral = int(_EPHEMERAL_RANGE.read_text().split()[0]) if _EPHEMERAL_RANGE.exists() else 49_152
    if lowest_ephemeral - _LOWEST >= 1000:
        return range(_LOWEST, lowest_ephemeral)
    return range(_LOWEST, 65_536)
