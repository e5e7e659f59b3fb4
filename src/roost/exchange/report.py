"""What came of an exchange."""

from collections import Counter
from typing import Protocol

import msgspec

from roost.ledger.findings import Finding


class Progress(Protocol):
    """Told how many things of how many are done."""

    def __call__(self, done: int, total: int) -> None: ...


class Report(msgspec.Struct, frozen=True):
    """What was copied, what was there already from an earlier run, and what is doubtful."""

    copied: Counter[str] = msgspec.field(default_factory=Counter)
    there_already: Counter[str] = msgspec.field(default_factory=Counter)
    doubts: list[Finding] = msgspec.field(default_factory=list)

    def doubt(self, kind: str, subject: str, detail: str) -> None:
        """Name something doubtful; ``kind`` is one of `roost.exchange.doubts`' words."""
        self.doubts.append(Finding(kind, subject, detail))
