"""The operations of cells, hosts and services, and their policy rules."""

from typing import Final

from roost.conductor.hosts.handlers import (
    accept_host,
    add_cell,
    add_hosts,
    change_cell,
    change_host,
    change_node,
    list_cells,
    list_hosts,
    list_nodes,
    list_services,
    move_host,
    remove_cell,
    remove_host,
    remove_node,
    renew_token,
    show_cell,
    show_cell_drain,
    show_host,
    show_host_drain,
    show_node_drain,
)
from roost.conductor.hosts.types import (
    AddedHost,
    AddedHosts,
    CellList,
    Enabling,
    HostNodes,
    HostPage,
    HostQuery,
    HostsQuery,
    RemovalQuery,
    Removed,
    ServiceList,
    ServicesQuery,
    ShownCell,
    ShownDrain,
    ShownHost,
    ShownNode,
    TokenQuery,
    WantedCell,
    WantedHosts,
    WantedMove,
)
from roost.web.errors import Conflict
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import ADMIN, Rule
from roost.web.query import Query

CELLS: Final = "/v1/cells"
HOSTS: Final = "/v1/hosts"
SERVICES: Final = "/v1/services"
_ONE: Final = f"{HOSTS}/{{host}}"
_NODES: Final = f"{_ONE}/nodes"

HOST_RULES: Final = {
    **{
        f"conductor:hosts:{verb}": ADMIN
        for verb in ("create", "list", "show", "update", "move", "token", "accept", "delete")
    },
    **{f"conductor:cells:{verb}": ADMIN for verb in ("create", "list", "show", "update", "delete")},
    "conductor:services:list": ADMIN,
}
"""The policy rules as they are without a policy file: cells and hosts are for administrators."""


def _rule(verb: str) -> Rule:
    return Rule(f"conductor:hosts:{verb}")


_OF_ONE: Final = Query(HostQuery)
_NAMED: Final = Creation(atomic=False, secret=True)
"""Creations of hosts: the client names them, cells' databases have them, the answers have secret tokens."""

HOST_OPERATIONS: Final = (
    Operation(
        "POST",
        HOSTS,
        _rule("create"),
        add_hosts,
        body=WantedHosts,
        takes=(),  # curl -d says that its data is a form
        answer=AddedHosts,
        status=201,
        raises=(Conflict,),
        creates=_NAMED,
    ),
    Operation("GET", HOSTS, _rule("list"), list_hosts, query=Query(HostsQuery), answer=HostPage),
    Operation("GET", _ONE, _rule("show"), show_host, query=_OF_ONE, answer=ShownHost),
    Operation(
        "PUT",
        _ONE,
        _rule("update"),
        change_host,
        body=Enabling,
        takes=(),
        query=_OF_ONE,
        answer=ShownHost,
        raises=(Conflict,),
    ),
    Operation(
        "DELETE",
        _ONE,
        _rule("delete"),
        remove_host,
        query=Query(RemovalQuery),
        answer=Removed,
        raises=(Conflict,),
    ),
    Operation(
        "POST",
        f"{_ONE}/move",
        _rule("move"),
        move_host,
        body=WantedMove,
        takes=(),
        query=_OF_ONE,
        answer=AddedHost,
        raises=(Conflict,),
        creates=_NAMED,
    ),
    Operation(
        "POST",
        f"{_ONE}/token",
        _rule("token"),
        renew_token,
        query=Query(TokenQuery),
        answer=AddedHost,
        status=201,
        creates=_NAMED,
    ),
    Operation(
        "POST",
        f"{_ONE}/accept",
        _rule("accept"),
        accept_host,
        query=_OF_ONE,
        status=204,
        provides=(),
        raises=(Conflict,),
    ),
    Operation("GET", f"{_ONE}/drain", _rule("show"), show_host_drain, query=_OF_ONE, answer=ShownDrain),
    Operation("GET", _NODES, _rule("show"), list_nodes, query=_OF_ONE, answer=HostNodes),
    Operation(
        "GET",
        f"{_NODES}/{{node}}/drain",
        _rule("show"),
        show_node_drain,
        query=_OF_ONE,
        answer=ShownDrain,
    ),
    Operation(
        "PUT",
        f"{_NODES}/{{node}}",
        _rule("update"),
        change_node,
        body=Enabling,
        takes=(),
        query=_OF_ONE,
        answer=ShownNode,
    ),
    Operation(
        "DELETE",
        f"{_NODES}/{{node}}",
        _rule("delete"),
        remove_node,
        query=_OF_ONE,
        answer=Removed,
        raises=(Conflict,),
    ),
    Operation(
        "POST",
        CELLS,
        Rule("conductor:cells:create"),
        add_cell,
        body=WantedCell,
        takes=(),
        answer=ShownCell,
        status=201,
        raises=(Conflict,),
        creates=Creation(),
    ),
    Operation("GET", CELLS, Rule("conductor:cells:list"), list_cells, answer=CellList),
    Operation("GET", f"{CELLS}/{{name}}", Rule("conductor:cells:show"), show_cell, answer=ShownCell),
    Operation(
        "GET",
        f"{CELLS}/{{name}}/drain",
        Rule("conductor:cells:show"),
        show_cell_drain,
        answer=ShownDrain,
    ),
    Operation(
        "PUT",
        f"{CELLS}/{{name}}",
        Rule("conductor:cells:update"),
        change_cell,
        body=Enabling,
        takes=(),
        answer=ShownCell,
        raises=(Conflict,),
    ),
    Operation(
        "DELETE",
        f"{CELLS}/{{name}}",
        Rule("conductor:cells:delete"),
        remove_cell,
        status=204,
        provides=(),
        raises=(Conflict,),
    ),
    Operation(
        "GET",
        SERVICES,
        Rule("conductor:services:list"),
        list_services,
        query=Query(ServicesQuery),
        answer=ServiceList,
    ),
)
