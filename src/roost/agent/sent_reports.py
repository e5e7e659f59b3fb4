"""The reports of a host's nodes that its cell has, and those that are due."""

from collections.abc import Sequence

import msgspec

from roost.model.node import NodeReport


class SentReports:
    """Remembers the reports that the cell has.

    ``health``: least seconds between two reports of values that change with each guest. ``refresh``: seconds
    after which all reports of a host with several nodes are sent again, as the cell leaves a new node out
    while it cannot ask placement for its owner. ``known``: the nodes of which the cell has had a report.
    """

    def __init__(self, health: float, refresh: float) -> None:
        self._health = health
        self._refresh = refresh
        self.known: set[str] = set()
        self.forget()

    def forget(self) -> None:
        """Note that the cell has no report."""
        self.known.clear()
        self._sent: dict[str, NodeReport] = {}
        self._sent_at = self._began = 0.0

    def due(self, reports: Sequence[NodeReport], now: float) -> tuple[NodeReport, ...]:
        """Return the reports to send. A node that is gone is reported as disabled."""
        if len(reports) > 1 and now - self._began >= self._refresh:
            self._sent, self._began = {}, now
        there = {report.node for report in reports}
        gone = [each for each in self._sent.values() if reports and each.node not in there]
        disabled = [msgspec.structs.replace(each, enabled=False) for each in gone]
        return tuple(each for each in (*reports, *disabled) if self._is_due(each, now))

    def take(self, reports: Sequence[NodeReport], asked: float) -> None:
        """Note that the cell has taken these reports, which were sent at ``asked`` (monotonic seconds)."""
        if reports:
            self._sent |= {report.node: report for report in reports}
            self.known |= {report.node for report in reports}
            self._sent_at = asked

    def _is_due(self, report: NodeReport, now: float) -> bool:
        sent = self._sent.get(report.node)
        if sent is None or sent.enabled != report.enabled:
            return True
        return report != sent and now - self._sent_at >= self._health
