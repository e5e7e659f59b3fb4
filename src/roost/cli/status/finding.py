"""Findings: problems of a cloud, with their severity."""

from typing import Literal

import msgspec

Level = Literal["fails", "look", "note"]
"""The severity of a finding.

``fails``: requests or guests suffer now. ``look``: they will, or an operator has to decide. ``note``: an
operator wants it so, or it is not known.
"""

_ORDER: tuple[Level, ...] = ("fails", "look", "note")


class StatusFinding(msgspec.Struct, frozen=True):
    """A problem in one sentence. ``level``: its severity. ``about``: the part of the cloud."""

    level: Level
    about: str
    says: str


class StatusReport(msgspec.Struct, frozen=True):
    """All findings, worst first.

    ``counts``: number of hosts, instances and so on, by kind. ``unknown``: parts that could not be checked.
    """

    findings: tuple[StatusFinding, ...]
    counts: dict[str, int]
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, findings: list[StatusFinding], counts: dict[str, int], unknown: tuple[str, ...] = ()
    ) -> "StatusReport":
        """Return a report with the findings sorted by level; those of one level keep their order."""
        return cls(tuple(sorted(findings, key=lambda each: _ORDER.index(each.level))), counts, unknown)

    @property
    def wrong(self) -> bool:
        """Return whether something fails, or an operator has to look."""
        return any(each.level != "note" for each in self.findings)

    @property
    def summary(self) -> str:
        """Return the counts in one line."""
        counts = ", ".join(f"{number:,} {name}" for name, number in self.counts.items())
        verdict = "something is wrong" if self.wrong else "nothing is wrong"
        if self.unknown and not self.wrong:
            verdict = f"nothing is known to be wrong, but not all could be asked: {', '.join(self.unknown)}"
            return f"{verdict}; {counts}" if counts else verdict
        return f"{verdict}: {counts}" if counts else verdict
