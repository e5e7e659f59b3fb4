"""Outcomes of tests: printed, and written to a file as lines of JSON."""

import json
import time
import unittest
from pathlib import Path
from typing import Any


class Outcomes(unittest.TestResult):
    """Counts outcomes of tests, and keeps the names of those that failed.

    ``results``: the file; None: none is written. A test's line has its id, outcome, seconds and text: the
    traceback and Nova's log.
    """

    def __init__(self, results: Path | None) -> None:
        super().__init__()
        self.failed: list[str] = []
        self.counts = {"passed": 0, "skipped": 0, "failed": 0}
        self._results = results
        self._started = 0.0
        self._outcome, self._text = "", ""

    def summary(self) -> str:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items())
        return "\n  ".join([counts, *self.failed])

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().startTest(test)
        self._started = time.monotonic()
        self._outcome, self._text = "failed", "it ended without an outcome"

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        name, seconds = test.id(), round(time.monotonic() - self._started, 1)
        self.counts[self._outcome] += 1
        if self._outcome == "failed":
            self.failed.append(name)
        print(f"{self._outcome:8}{seconds:7.1f} s  {name}", flush=True)
        if self._results is not None:
            line = {"test": name, "outcome": self._outcome, "seconds": seconds, "text": self._text}
            with self._results.open("a") as results:
                results.write(json.dumps(line) + "\n")

    def addSuccess(self, test: unittest.TestCase, details: Any = None) -> None:  # noqa: N802
        self._outcome, self._text = "passed", ""

    def addExpectedFailure(self, test: unittest.TestCase, err: Any = None, details: Any = None) -> None:  # noqa: N802
        self._outcome, self._text = "passed", ""

    def addSkip(self, test: unittest.TestCase, reason: str | None = None, details: Any = None) -> None:  # noqa: N802
        self._outcome, self._text = "skipped", reason or _read(details)

    def addError(self, test: unittest.TestCase, err: Any = None, details: Any = None) -> None:  # noqa: N802
        self._outcome = "failed"
        self._text = self._exc_info_to_string(err, test) if details is None else _read(details)

    addFailure = addError  # noqa: N815

    def addUnexpectedSuccess(self, test: unittest.TestCase, details: Any = None) -> None:  # noqa: N802
        self._outcome, self._text = "failed", "a success that Nova does not expect"


def _read(details: Any) -> str:
    return "\n".join(f"{name}: {content.as_text()}" for name, content in sorted((details or {}).items()))
