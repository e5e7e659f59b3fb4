"""The check of the names of added hosts: none is, or looks like, the name of another host or of its node."""

from collections.abc import Sequence

from roost.model.names import look_alike, look_of
from roost.state.api_database.asking_cells import ask_cell
from roost.state.api_database.host_mappings import cells_of_hosts
from roost.state.api_database.node_names import find_look_alikes, owners_of_names
from roost.state.cell_database import Cell
from roost.state.cell_database.nodes import find_nodes_called
from roost.storage import Database
from roost.web.errors import Conflict


async def check_names(api: Database, cells: Sequence[Cell], hosts: Sequence[str]) -> None:
    """Check that hosts may be added under these names.

    Raises:
        Conflict: a node of another host has the name of one, a new name looks like that of another host or
            node, or two of the names look alike.
        StorageError: the API database does not answer.
    """
    owners = dict(await api.read(owners_of_names(tuple(hosts))))
    for cell in cells:
        named = await ask_cell(cell, find_nodes_called(tuple(hosts)))
        owners.update((each.nodename, each.host) for each in named or ())
    for name, owner in sorted(owners.items()):
        if name != owner and name in hosts:
            raise Conflict(
                f"host {name!r} cannot be added: a node of host {owner!r} has this name; "
                "remove that node first"
            )
    # A mapped host has its name: it was added by an earlier run of this request, or is added again.
    mapped = await api.read(cells_of_hosts(tuple(hosts)))
    new = tuple(host for host in hosts if host not in mapped)
    alike = await api.read(find_look_alikes(new))
    for host in new:
        owned = alike.get(host)
        if owned is not None and owned.host != host:
            whose = "another host" if owned.name == owned.host else f"a node of host {owned.host!r}"
            raise Conflict(
                f"host {host!r} cannot be added: its name looks like {owned.name!r}, that of {whose}"
            )
    _check_alike(new)


def _check_alike(hosts: Sequence[str]) -> None:
    """Raise `Conflict` if two new hosts have names that look alike."""
    by_look: dict[str, list[str]] = {}
    for host in hosts:
        others = by_look.setdefault(look_of(host), [])
        for other in others:
            if look_alike(host, other):
                raise Conflict(f"hosts {other!r} and {host!r} cannot both be added: their names look alike")
        others.append(host)
