"""The refusals of reports: agents learn which of their reports are refused, and operators see it."""

from collections.abc import Mapping, Sequence

from roost.agent.protocol.types import SessionKey
from roost.model.node import NodeReport
from roost.process.context import Context
from roost.process.metrics import catalogue as metrics
from roost.state.cell_database.host_admission import keep_refused, refused_nodes_of


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
