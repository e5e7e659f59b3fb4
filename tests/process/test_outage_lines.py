"""While something is away the log has a line at the beginning, one a minute, and one at the end."""

import structlog
from structlog.testing import capture_logs

from roost.process.logs.outages import QUIET_SECONDS, SILENT_SECONDS, OutageLines


class Clock:
    """Seconds that only the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lines_of(clock: Clock) -> OutageLines:
    return OutageLines("somewhere", "it is away", "it is there again", clock=clock)


def test_an_outage_has_a_line_when_it_begins_one_a_minute_with_a_count_and_one_when_it_ends() -> None:
    structlog.reset_defaults()
    clock = Clock()
    lines = lines_of(clock)
    with capture_logs() as logged:
        lines.succeeded()
        for _ in range(600):
            lines.failed(error="refused")
            clock.now += 0.25
        clock.now += QUIET_SECONDS
        lines.succeeded()
        lines.succeeded()
    events = [(line["event"], line.get("more_since_the_last_line"), line.get("failures")) for line in logged]
    assert [event for event, *_ in events] == ["it is away"] * 3 + ["it is there again"]
    assert events[0][1] is None and events[1][1] == events[2][1] == SILENT_SECONDS / 0.25
    assert events[3][2] == 600


def test_requests_that_succeed_in_between_are_no_end() -> None:
    structlog.reset_defaults()
    clock = Clock()
    lines = lines_of(clock)
    with capture_logs() as logged:
        for _ in range(100):
            lines.failed(error="busy")
            lines.succeeded()
            clock.now += 0.5
    assert len(logged) == 1


def test_each_subject_has_its_own_lines() -> None:
    structlog.reset_defaults()
    clock = Clock()
    lines = lines_of(clock)
    with capture_logs() as logged:
        lines.failed("rack1", cell="rack1")
        lines.failed("rack2", cell="rack2")
        clock.now += QUIET_SECONDS
        lines.succeeded("rack2", cell="rack2")
    assert [(line["event"], line["cell"]) for line in logged] == [
        ("it is away", "rack1"),
        ("it is away", "rack2"),
        ("it is there again", "rack2"),
    ]
