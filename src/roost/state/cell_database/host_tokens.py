"""The tokens of hosts, of which the cell keeps digests.

A host has one token in use, and at most one that was issued later and not used yet. The first use of the
newer one ends the older one, so neither a lost answer nor a restart locks an agent out.
"""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.state.cell_database.tables import host_tokens
from roost.storage import transaction


class HostToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token of a host, by its digest (`roost.model.token`). ``issued_at``: seconds since the
    epoch."""

    digest: str
    host: str
    issued_at: float
    is_used: bool = False


@transaction
def issue_token(connection: Connection, *, host: str, digest: str, at: float, alone: bool = False) -> None:
    """Make a token of a host valid besides the one in use. A token that was never used ends.

    ``alone``: the token in use ends too.
    """
    ended = sa.delete(host_tokens).where(host_tokens.c.host == host)
    connection.execute(ended if alone else ended.where(host_tokens.c.is_used == sa.false()))
    row = HostToken(digest=digest, host=host, issued_at=at)
    connection.execute(sa.insert(host_tokens), msgspec.structs.asdict(row))


@transaction
def use_token(connection: Connection, digest: str) -> bool:
    """Note that a token is used: at its first use the others of its host end. Returns False if not valid."""
    mine = host_tokens.c.digest == digest
    unused = (mine, host_tokens.c.is_used == sa.false())
    is_first = connection.execute(sa.update(host_tokens).where(*unused).values(is_used=True)).rowcount
    host = connection.execute(sa.select(host_tokens.c.host).where(mine)).scalar_one_or_none()
    if is_first:
        connection.execute(sa.delete(host_tokens).where(host_tokens.c.host == host, ~mine))
    # Another process may have noted the first use; a token that was issued since is valid.
    return host is not None


@transaction
def revoke_tokens(connection: Connection, host: str) -> int:
    """End all tokens of a host. Returns their number."""
    return connection.execute(sa.delete(host_tokens).where(host_tokens.c.host == host)).rowcount


@transaction
def read_host_tokens(connection: Connection) -> dict[str, HostToken]:
    """Return all valid tokens of the cell's hosts, by digest."""
    return {row.digest: HostToken(**row._asdict()) for row in connection.execute(_ALL)}


_ALL = sa.select(host_tokens)
