"""Which reports of its nodes an agent has sent, and which are due."""

from collections.abc import Sequence

import msgspec

from roost.model.node import NodeReport


class ToldReports:
    """The reports that the cell has.

    ``health``: seconds between two reports of what changes with each guest. ``refresh``: seconds after which
    all reports of a host with several nodes are sent again: the cell leaves a new node out while it cannot
    ask placement whose it is. ``known``: the nodes that the cell was told of.
    """

    def __init__(self, health: float, refresh: float) -> None:
        self._health = health
        self._refresh = refresh
        self.known: set[str] = set()
        self.forget()

    def forget(self) -> None:
        """The cell has no report."""
        self.known.clear()
        self._told: dict[str, NodeReport] = {}
        self._told_at = self._began = 0.0

    def due(self, reports: Sequence[NodeReport], now: float) -> tuple[NodeReport, ...]:
        """The reports to be sent, of the nodes that there are. One that is gone is told to be disabled."""
        if len(reports) > 1 and now - self._began >= self._refresh:
            self._told, self._began = {}, now
        there = {report.node for report in reports}
        gone = [each for each in self._told.values() if reports and each.node not in there]
        disabled = [msgspec.structs.replace(each, enabled=False) for each in gone]
        return tuple(each for each in (*reports, *disabled) if self._is_due(each, now))

    def take(self, reports: Sequence[NodeReport], asked: float) -> None:
        """The cell has taken these, which were sent at ``asked``."""
        if reports:
            self._told |= {report.node: report for report in reports}
            self.known |= {report.node for report in reports}
            self._told_at = asked

    def _is_due(self, report: NodeReport, now: float) -> bool:
        told = self._told.get(report.node)
        if told is None or told.enabled != report.enabled:
            return True
        return report != told and now - self._told_at >= self._health
