"""Findings: things that are wrong with a cloud, with their severity."""

from typing import Literal

import msgspec

Level = Literal["fails", "look", "note"]
"""The severity of a finding.

``fails``: requests or guests suffer now. ``look``: they will, or an operator is asked. ``note``: it is as an
operator wants it, or it is not known.
"""

_ORDER: tuple[Level, ...] = ("fails", "look", "note")


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong: how bad it is, about which part of the cloud, in one sentence."""

    level: Level
    about: str
    says: str


class Report(msgspec.Struct, frozen=True):
    """All findings, worst first.

    ``counts`` says how many there are of each part of the cloud, ``unknown`` which parts could not be asked.
    """

    findings: tuple[Finding, ...]
    counts: dict[str, int]
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(cls, findings: list[Finding], counts: dict[str, int], unknown: tuple[str, ...] = ()) -> "Report":
        """Return a report with the findings in order: those of one level stay as they are."""
        return cls(tuple(sorted(findings, key=lambda each: _ORDER.index(each.level))), counts, unknown)

    @property
    def wrong(self) -> bool:
        """Return whether something fails, or an operator has to look."""
        return any(each.level != "note" for each in self.findings)

    @property
    def summary(self) -> str:
        """The counts in one line."""
        counts = ", ".join(f"{number:,} {name}" for name, number in self.counts.items())
        verdict = "something is wrong" if self.wrong else "nothing is wrong"
        if self.unknown and not self.wrong:
            verdict = f"nothing is known to be wrong, but not all could be asked: {', '.join(self.unknown)}"
            return f"{verdict}; {counts}" if counts else verdict
        return f"{verdict}: {counts}" if counts else verdict
