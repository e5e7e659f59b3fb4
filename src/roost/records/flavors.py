"""The flavors of the newest runs: a scheduler has no other list of flavors."""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.spec import Flavor
from roost.records.tables import runs


class _SpecWithFlavor(msgspec.Struct):
    flavor: Flavor


_decode = msgspec.json.Decoder(_SpecWithFlavor).decode


def read_flavors(connection: Connection, most_runs: int) -> list[Flavor]:
    """Return the flavors of the newest ``most_runs`` runs by name; of equal names the newest one."""
    newest = connection.scalar(sa.select(sa.func.max(runs.c.number))) or 0
    query = sa.select(runs.c.spec).where(runs.c.number > newest - most_runs).order_by(runs.c.number)
    found: dict[str, Flavor] = {}
    for text in connection.execute(query).scalars():
        try:
            flavor = _decode(text).flavor
        except msgspec.MsgspecError:
            continue  # a spec of an earlier version
        found[flavor.name] = flavor
    return sorted(found.values(), key=lambda each: each.name)
