"""Announcements of work that other processes have written into a cell: the address at which they come.

The super conductors, and other conductors of the cell, read the address in the cell's database
(`roost.state.cell_database.wake_addresses`). Without announcements the process finds the work at its next
look.
"""

import asyncio
import ipaddress
import uuid
from typing import Final

import structlog

from roost.process.options import OptionStruct, option
from roost.process.remote_wakes import WakeAddress, open_receiver, own_address_towards
from roost.state.cell_database import Cell
from roost.state.cell_database.conductor_work import work_topic
from roost.state.cell_database.host_work import orders_topic
from roost.state.cell_database.wake_addresses import store_wake_address
from roost.state.leases import Tenure
from roost.storage import StorageError

BIND_SECONDS: Final = 30.0
"""Seconds until an address that could not be used is tried again."""

_log = structlog.get_logger()


def _ip_address(text: str | None) -> str | None:
    if text is not None:
        try:
            ipaddress.ip_address(text)
        except ValueError:
            raise ValueError(f"[conductor] wake_host: {text!r} is no IP address") from None
    return text


class WakeOptions(OptionStruct, frozen=True, kw_only=True, group="conductor"):
    """The address at which a cell's conductor is told of work."""

    host: str | None = option(
        None,
        name="wake_host",
        parse=_ip_address,
        help="The IP address of this machine at which other conductors tell the conductor of a cell at once, "
        "by UDP, that there is work. By default the one from which it reaches the cell's database. Without "
        "announcements work is found by looks at the database.",
    )
    port: int = option(
        0, name="wake_port", min=0, max=65535, help="The UDP port of wake_host. 0: a free one."
    )


async def take_announcements(cell: Cell, tenure: Tenure, options: WakeOptions) -> None:
    """Wake the topics of a cell when other processes announce work, until cancelled.

    ``tenure``: the lease of this process; its address counts as long as it is held.
    """
    host = options.host or await own_address_towards(cell.database.url.host)
    topics = (work_topic(cell.name), orders_topic(cell.name))
    while True:
        try:
            transport, address = await open_receiver(
                cell.wakes, topics, str(uuid.uuid4()), host, options.port
            )
        except OSError as error:
            values = {"cell": cell.name, "address": f"{host}:{options.port}", "error": str(error)}
            _log.warning("announcements of work cannot be received", **values)
            await asyncio.sleep(BIND_SECONDS)
            continue
        cell.announcer.own = address
        try:
            await _keep_stored(cell, tenure, address)
        finally:
            cell.announcer.own = None
            transport.close()


async def _keep_stored(cell: Cell, tenure: Tenure, address: WakeAddress) -> None:
    """Store the address under each ownership of the lease, until cancelled."""
    stored_for = ""
    while True:
        if tenure.holder != stored_for:
            try:
                await cell.write(store_wake_address(tenure.name, address))
                stored_for = tenure.holder
            except StorageError as error:
                _log.debug(
                    "the address of a cell's process is stored later", cell=cell.name, error=str(error)
                )
        await asyncio.sleep(tenure.times.renew)
