"""Reports that are refused: nodes that are not the host's, and the refusals that agents and operators see.

A token belongs to one host, and a report lets its agent change the node's tree. By reporting the uuid of the
root of another cell's host, or of a provider that an operator has made, its agent could take over foreign
providers. So a root that is in placement before any host of the cell has reported it must have the name of
the host, or its own uuid as name like a bare metal node.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from roost.agent.protocol.errors import EndpointUnavailable
from roost.agent.protocol.types import SessionKey
from roost.conductor.agent_endpoint.endpoint_context import EndpointContext
from roost.conductor.agent_endpoint.transactions import hosts_of
from roost.model.node import NodeReport
from roost.placement.interface import Provider
from roost.process.context import Context
from roost.process.metrics import catalogue as metrics
from roost.state.cell_database.host_admission import keep_refused, refused_nodes_of


class NewNodes(NamedTuple):
    """Nodes that are not to be stored. ``others``: not the host's. ``unsure``: placement is away."""

    others: frozenset[str]
    unsure: frozenset[str]


class NewNodesJudge:
    """Judges the nodes that hosts report.

    It keeps in memory which nodes a session has in the cell's database, so that most reports cost no query.
    """

    def __init__(self, context: EndpointContext, database: str) -> None:
        self._context = context
        self._database = database
        self._own: dict[str, tuple[SessionKey, frozenset[str]]] = {}

    async def judge(self, session: SessionKey, reports: Sequence[NodeReport]) -> NewNodes:
        """Return the reported nodes that the host may not report, of those that are new to the cell."""
        of, own = self._own.get(session.host, (session, frozenset()))
        if of != session:
            own = frozenset()
        named = tuple(each.node for each in reports if each.node not in own)
        if not named:
            return NewNodes(frozenset(), frozenset())
        known = await self._context.read(self._database, partial(hosts_of, named=named))
        there = frozenset(node for node, host in known.items() if host == session.host)
        self._own[session.host] = session, own | there
        return await _judged(self._context, session.host, [node for node in named if node not in known])


async def _judged(context: EndpointContext, host: str, nodes: Sequence[str]) -> NewNodes:
    others: dict[str, str] = {}
    unsure: set[str] = set()
    for node in nodes:
        try:
            provider = await context.providers.find(node)
        except EndpointUnavailable:
            unsure.add(node)
        else:
            if provider is not None and not _is_own(host, provider):
                others[node] = provider.name
    if others:
        values = {"host": host, "providers": others}
        context.log("a host reports nodes whose providers do not carry its name", values, "error")
    return NewNodes(frozenset(others), frozenset(unsure))


def _is_own(host: str, provider: Provider) -> bool:
    if provider.parent is not None:
        return False
    return provider.name in (host, provider.uuid) or provider.name.startswith(f"{host}.")


class ReportRefusals:
    """Keeps the refused nodes of hosts, in the cell's database and for the answers to polls.

    Its state in memory saves queries. ``database``: the cell's.
    """

    def __init__(self, context: Context, database: str) -> None:
        self._context = context
        self._database = database
        self._known: dict[str, tuple[SessionKey, Mapping[str, str]]] = {}

    def opened(self, session: SessionKey) -> None:
        """Note that a session begins: the database has forgotten the refusals before it."""
        self._known[session.host] = session, {}

    async def note(
        self, session: SessionKey, reports: Sequence[NodeReport], refused: Mapping[str, str]
    ) -> Mapping[str, str] | None:
        """Note the ``refused`` nodes of some reports (uuid -> reason); the other reports are taken.

        Returns all refused nodes of the host; None if no report came and none is known: there is nothing to
        tell.
        """
        of, known = self._known.get(session.host, (None, {}))
        if of != session:
            if not reports:
                return None
            # Another process had the session until now.
            known = await self._context.read(self._database, refused_nodes_of(session.host))
        if not reports:
            return known or None
        reported = {each.node for each in reports}
        present = {**{n: why for n, why in known.items() if n not in reported}, **refused}
        if present != known:
            at = self._context.clock()
            await self._context.write(self._database, keep_refused(session.host, present, at))
            if new := present.keys() - known.keys():
                metrics.REFUSED_NODES.inc(float(len(new)))
        self._known[session.host] = session, present
        return present
