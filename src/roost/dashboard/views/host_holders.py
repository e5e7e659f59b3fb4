"""The consumers that hold something of a host's providers, by page."""

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy.engine import Connection

from roost.ledger.holdings import consumers_of_rows, held_by
from roost.ledger.state import Held
from roost.model.allocation import Resources

HOLDERS_ON_A_PAGE: Final = 15


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer and what it holds, by the uuid of the provider.

    ``kind``: its type in placement, such as ``INSTANCE`` or ``MIGRATION``.
    """

    consumer: str
    project_id: str
    user_id: str
    kind: str
    group: str | None
    holds: dict[str, Resources]


class Holders(msgspec.Struct, frozen=True):
    """A page of the consumers of a host. ``total``: the number of all."""

    total: int
    page: int
    holders: tuple[Holder, ...]


def read_holders(connection: Connection, rows: Sequence[int], page: int) -> Holders:
    """Return a page of the consumers of some providers, the newest first. ``rows``: the keys of providers.

    A page beyond the last one is the last one.
    """
    total, uuids = consumers_of_rows(connection, rows, HOLDERS_ON_A_PAGE, (page - 1) * HOLDERS_ON_A_PAGE)
    last = max(1, -(-total // HOLDERS_ON_A_PAGE))
    if page > last:
        return read_holders(connection, rows, last)
    held = held_by(connection, uuids)
    return Holders(total, page, tuple(holder_of(held[each]) for each in uuids if each in held))


def holder_of(held: Held) -> Holder:
    """Return a consumer with what it holds."""
    consumer = held.consumer
    return Holder(
        consumer=consumer.uuid,
        project_id=consumer.project_id,
        user_id=consumer.user_id,
        kind=consumer.consumer_type,
        group=consumer.group,
        holds=held.allocations,
    )
