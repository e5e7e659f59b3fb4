"""Reports the providers of all nodes of a host, and keeps them between two reports."""

from collections.abc import Collection
from dataclasses import dataclass, field

from roost.agent.agent_context import AgentContext
from roost.agent.errors import ReshapePostponed, ReshapeRefused
from roost.agent.node_reports import read_nodes
from roost.agent.protocol.types import ProviderState, SessionKey
from roost.agent.provider_merge import Applied
from roost.agent.provider_report import report_providers
from roost.agent.troubles import Troubles
from roost.agent.workload import AgentWorkload
from roost.model.text import error_text

_NO_REPORT = "a host cannot report to placement"
_REFUSED = "placement refuses a part of a host's report"

SHOWN = 10
"""Refusals that one log line names, at most."""

AT_ONCE = 16
"""Nodes whose providers are reported at the same time, so that one commit may have changes of several."""


@dataclass(slots=True)
class Failures:
    """Failures of a report of all nodes. ``error``: the first one that is not a refusal of placement."""

    refusals: list[str]
    error: Exception | None = None
    of_nodes: dict[str, str] = field(default_factory=dict)
    """Refusals of placement, by the uuid of the node's root."""
    waiting: bool = False
    """True if a node's providers are left out because the cell has no report of the node yet."""

    def __bool__(self) -> bool:
        return bool(self.refusals) or self.error is not None or self.waiting


class NodeProviders:
    """Reports the providers of the nodes of one host.

    ``refresh``: seconds between two reads of the providers from placement, if the driver changes nothing.
    ``registered``: placement has had a whole report. ``refused``: refusals of placement in the last report,
    by the uuid of the node's root. ``reshaping``: no build may begin, as claims may move to other providers.
    A node may be reshaped until its first report is made: later its providers do not move, as its options are
    read at the start.
    """

    def __init__(
        self, context: AgentContext, host: str, refresh: float, troubles: Troubles, work: AgentWorkload
    ) -> None:
        self._context = context
        self._host = host
        self._troubles = troubles
        self._work = work
        self.registered = self.reshaping = False
        self.refused: dict[str, str] = {}
        self._begun: set[str] = set()
        self._refresh = refresh
        self._applied: dict[str, Applied] = {}
        self._read: dict[str, tuple[SessionKey, float, tuple[ProviderState, ...]]] = {}

    async def report(self, session: SessionKey, known: Collection[str], *, enabled: bool | None) -> Failures:
        """Bring placement in line with all nodes. Returns the failures, after which it is repeated soon.

        ``known``: the roots of which the cell has had reports; only these may be created under another name
        than the host's.
        """
        try:
            nodes = await read_nodes(self._context, self._host)
        except Exception as error:
            self._troubles.tell(_NO_REPORT, error, "error")
            return Failures([], error)
        failures = await self._report_nodes(session, nodes, known, enabled)
        if failures.error is None:
            self.refused = failures.of_nodes
        self.reshaping = isinstance(failures.error, ReshapePostponed)
        if failures.error is not None:
            self._troubles.tell(_NO_REPORT, failures.error, "error")
            return failures
        self._troubles.over(_NO_REPORT)
        if failures.refusals:
            self._troubles.tell(_REFUSED, "; ".join(failures.refusals[:SHOWN]), "error")
        elif not failures.waiting:
            self.registered = True
            self._troubles.over(_REFUSED)
        return failures

    async def _report_nodes(
        self, session: SessionKey, nodes: dict[str, str], known: Collection[str], enabled: bool | None
    ) -> Failures:
        """Report each node; a failure of one stops no other. ``nodes``: the roots by the nodes' names."""
        ready = [(node, root) for node, root in nodes.items() if node == self._host or root in known]
        failures = Failures([], waiting=len(ready) < len(nodes))
        for at in range(0, len(ready), AT_ONCE):
            some = ready[at : at + AT_ONCE]
            outcomes = await self._context.together(
                [self._outcome(session, node, root, enabled) for node, root in some]
            )
            for (node, root), outcome in zip(some, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    failures.error = failures.error or outcome
                elif outcome:
                    failures.of_nodes[root] = "; ".join(outcome)
                    failures.refusals += [each if len(nodes) == 1 else f"{node}: {each}" for each in outcome]
        for gone in self._applied.keys() - nodes.keys():
            del self._applied[gone]
        self._begun.intersection_update(nodes)
        return failures

    async def _outcome(
        self, session: SessionKey, node: str, root: str, enabled: bool | None
    ) -> tuple[str, ...] | Exception:
        try:
            return await self._report_node(session, node, root, enabled)
        except ReshapeRefused as error:
            self._applied.pop(node, None)
            return (f"the node is not reshaped, and stays as it was: {error_text(error)}",)
        except Exception as error:
            # A write may have had no answer; the state has it as applied since before it was made.
            self._applied.pop(node, None)
            return error

    async def _report_node(
        self, session: SessionKey, node: str, root: str, enabled: bool | None
    ) -> tuple[str, ...]:
        began = self._context.monotonic()
        # Providers that another session read, or that were read long ago, may have changed.
        reader, read_at, there = self._read.pop(node, (session, began, None))
        read = None if reader != session or began - read_at >= self._refresh else there
        if read is None:
            read_at = began
        if (applied := self._applied.get(node)) is None:
            applied = await self._context.state.load_applied(node)
        reported = await report_providers(
            self._context,
            session,
            node,
            root,
            applied,
            enabled=enabled,
            read=read,
            may_reshape=None if node in self._begun else self._may_reshape,
        )
        self._applied[node] = reported.applied
        self._begun.add(node)
        if reported.unchanged is not None:
            self._read[node] = session, read_at, reported.unchanged
        return reported.refusals

    def _may_reshape(self) -> bool:
        """Begin no builds until the report has ended. Returns whether no build is under way."""
        self.reshaping = True
        return not self._work.under_construction
