"""Links to hosts, cells and instances, by names that others have given."""

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.html.values import name


def host_link(host: str | None, node: str | None) -> h.Node:
    """Return a host with a link to its page. ``node``: its root provider, None if that is not known."""
    if host is None or node is None:
        return name(host)
    return h.a(".name", href=addresses.host(node))[h.bdi[host]]


def cell_link(cell: str | None) -> h.Node:
    """Return a cell with a link to its part of the page of cells."""
    if cell is None:
        return "–"
    return h.a(".name", href=addresses.cell(cell))[h.bdi[cell]]


def instance_link(uuid: str | None, shown: str | None = None) -> h.Node:
    """Return an instance with a link to its page. ``shown``: its name, by default the uuid.

    The uuid of one with a name is seen under the pointer.
    """
    if uuid is None:
        return "–"
    classes = "name" if shown else "name mono"
    return h.a(class_=classes, href=addresses.instance(uuid), title=uuid if shown else None)[
        h.bdi[shown or uuid]
    ]
