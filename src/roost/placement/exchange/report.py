"""The result of an import or an export."""

from collections import Counter
from typing import Protocol

import msgspec

from roost.ledger.findings import Finding


class Progress(Protocol):
    """Receives the progress: the numbers of providers and consumers that are done, and of all."""

    def __call__(self, done: int, total: int) -> None: ...


class ExchangeReport(msgspec.Struct, frozen=True):
    """The result of an import or an export.

    ``copied`` and ``there_already`` count by kind of row; the latter were copied by an earlier run that was
    interrupted. ``anomalies`` are in the order in which they were found.
    """

    copied: Counter[str] = msgspec.field(default_factory=Counter)
    there_already: Counter[str] = msgspec.field(default_factory=Counter)
    anomalies: list[Finding] = msgspec.field(default_factory=list)

    def add(self, kind: str, subject: str, detail: str) -> None:
        """Add an anomaly. ``kind`` is a constant of `roost.placement.exchange.anomalies` or
        `roost.ledger.findings`."""
        self.anomalies.append(Finding(kind, subject, detail))
