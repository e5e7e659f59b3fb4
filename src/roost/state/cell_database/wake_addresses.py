"""The addresses at which the processes of a cell are woken when others have written work for them.

An address counts as long as the lease of its process has a holder.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from roost.process.remote_wakes import WakeAddress, send_wake
from roost.state.cell_database.tables import leases, wake_addresses
from roost.state.leases import VACANT
from roost.storage import StorageError, short_read, transaction

ADDRESS_SECONDS: Final = 5.0
"""Seconds after which the addresses are read again, when there is work to announce."""

_log = structlog.get_logger()


class WorkAnnouncer:
    """Wakes topics in the other processes of a cell.

    It never waits: addresses that are old are used, and are read anew beside that.

    ``read``: reads the addresses. ``own``: that of this process, if it has one.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[tuple[WakeAddress, ...]]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.own: WakeAddress | None = None
        self._read = read
        self._monotonic = monotonic
        self._addresses: tuple[WakeAddress, ...] = ()
        self._until = float("-inf")
        self._reading: asyncio.Task[None] | None = None
        self._meanwhile: set[str] = set()

    def announce(self, topic: str) -> None:
        """Wake a topic in the other processes. Needs a running event loop."""
        self._send(topic, self._addresses)
        if self._monotonic() >= self._until:
            self._until = float("inf")
            self._reading = asyncio.create_task(self._refresh())
        if self._reading is not None:
            self._meanwhile.add(topic)

    async def _refresh(self) -> None:
        before = self._addresses
        try:
            self._addresses = await self._read()
        except StorageError as error:
            _log.debug("the addresses of a cell's processes cannot be read", error=str(error))
        finally:
            topics, self._meanwhile = self._meanwhile, set()
            self._until = self._monotonic() + ADDRESS_SECONDS
            self._reading = None
        new = tuple(address for address in self._addresses if address not in before)
        for topic in topics:
            self._send(topic, new)

    def _send(self, topic: str, addresses: tuple[WakeAddress, ...]) -> None:
        for address in addresses:
            if address != self.own:
                send_wake(address, topic)


@transaction
def store_wake_address(connection: Connection, lease: str, address: WakeAddress) -> None:
    """Store the address of the process that has a lease. Addresses without a lease are removed."""
    connection.execute(_REMOVE, {"of": lease})
    row = {"lease": lease, "host": address.host, "port": address.port, "wake_key": address.key}
    connection.execute(sa.insert(wake_addresses), [row])


@short_read
def read_wake_addresses(connection: Connection) -> tuple[WakeAddress, ...]:
    """Return the addresses of the processes that hold their leases."""
    return tuple(WakeAddress(*row) for row in connection.execute(_ADDRESSES))


_LEASE = wake_addresses.c.lease
_REMOVE = sa.delete(wake_addresses).where(
    sa.or_(sa.bindparam("of") == _LEASE, _LEASE.not_in(sa.select(leases.c.name)))
)
_ADDRESSES = (
    sa.select(wake_addresses.c.host, wake_addresses.c.port, wake_addresses.c.wake_key)
    .join(leases, leases.c.name == _LEASE)
    .where(leases.c.holder != VACANT)
)
