"""The flavors of the newest runs: a scheduler has no other list of flavors."""

from collections import Counter

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.spec import Flavor
from roost.records.tables import runs


class _SpecWithFlavor(msgspec.Struct):
    flavor: Flavor


_decode = msgspec.json.Decoder(_SpecWithFlavor).decode


class _SpecWithAnyFlavor(msgspec.Struct):
    flavor: msgspec.Raw = msgspec.Raw(b"")


_decode_any = msgspec.json.Decoder(_SpecWithAnyFlavor).decode


def count_flavors(connection: Connection, most_runs: int) -> dict[bytes, int]:
    """Count the flavors of the newest ``most_runs`` runs: each as JSON, with its runs."""
    newest = connection.scalar(sa.select(sa.func.max(runs.c.number))) or 0
    specs = connection.execute(sa.select(runs.c.spec).where(runs.c.number > newest - most_runs)).scalars()
    found = Counter(bytes(_decode_any(spec).flavor) for spec in specs)
    del found[b""]
    return dict(found)


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
