"""Reports on readiness: bounded in time and in cost, whatever the checks do."""

import asyncio
from collections.abc import Awaitable, Callable

from structlog.testing import capture_logs

from roost.web.health import CACHE_SECONDS, CheckResult, Health, HealthCheck, HealthOptions, NoAnswer
from support.waiting import patience

SHORT = HealthOptions(check_seconds=0.05)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Answer:
    """A check's question that counts its calls, and answers when the test lets it."""

    def __init__(self, at_once: bool = True) -> None:
        self.calls = 0
        self.error: Exception | None = None
        self.may = asyncio.Event()
        if at_once:
            self.may.set()

    async def __call__(self) -> None:
        self.calls += 1
        await self.may.wait()
        if self.error is not None:
            raise self.error


def running(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Make a test of a coroutine function."""
    return lambda: asyncio.run(test())  # type: ignore[arg-type]


@running
async def test_all_checks_must_pass() -> None:
    good, bad = Answer(), Answer()
    bad.error = OSError("secret.example.org refuses")
    health = Health(
        (HealthCheck("good", good), HealthCheck("bad", bad), HealthCheck("known", judge=lambda _: "gone")),
        SHORT,
    )
    report = await health.readiness()
    assert not report.ready
    # Everybody may read a report: it has no text of an error.
    assert report.checks == (
        CheckResult("good", True),
        CheckResult("bad", False, "it fails; the log has the error"),
        CheckResult("known", False, "gone"),
    )


@running
async def test_many_probes_cost_one_run_of_each_check() -> None:
    clock, answer = Clock(), Answer(at_once=False)
    health = Health((HealthCheck("one", answer),), HealthOptions(), clock)
    probes = [asyncio.create_task(health.readiness()) for _ in range(100)]
    await asyncio.sleep(0)
    answer.may.set()
    assert all(report.ready for report in await asyncio.gather(*probes))
    clock.now += CACHE_SECONDS / 2
    await health.readiness()
    assert answer.calls == 1
    clock.now += CACHE_SECONDS
    await health.readiness()
    assert answer.calls == 2


@running
async def test_a_check_that_hangs_is_reported_and_not_started_again() -> None:
    clock, answer, other = Clock(), Answer(at_once=False), Answer()
    health = Health((HealthCheck("hangs", answer), HealthCheck("other", other)), SHORT, clock)
    for _ in range(5):
        report = await health.readiness()
        assert report.checks == (
            CheckResult("hangs", False, "no answer within 0.05 s"),
            CheckResult("other", True),
        )
        clock.now += CACHE_SECONDS
    assert (answer.calls, other.calls) == (1, 5)
    answer.may.set()
    assert (await health.readiness()).ready
    assert answer.calls == 1
    clock.now += CACHE_SECONDS
    await health.readiness()
    assert answer.calls == 2


@running
async def test_judges_see_what_all_checks_found_out_and_know_a_late_answer() -> None:
    found: list[object] = []
    late = Answer(at_once=False)

    async def find() -> None:
        await asyncio.sleep(0)
        found.append("it")

    def judge(failure: Exception | None) -> str | None:
        return None if isinstance(failure, NoAnswer) and found else f"{failure} {found}"

    assert (
        await Health((HealthCheck("late", late, judge), HealthCheck("finds", find)), SHORT).readiness()
    ).ready


@running
async def test_a_good_answer_may_last_longer_and_a_bad_one_does_not() -> None:
    clock, answer = Clock(), Answer()
    health = Health((HealthCheck("rarely", answer, lasting=10.0),), SHORT, clock)
    for _ in range(5):
        assert (await health.readiness()).ready
        clock.now += CACHE_SECONDS
    assert answer.calls == 1
    clock.now += 10.0
    answer.error = OSError()
    for expected in (2, 3, 4):
        assert not (await health.readiness()).ready
        assert answer.calls == expected
        clock.now += CACHE_SECONDS


@running
async def test_a_probe_that_goes_away_leaves_the_others_their_report() -> None:
    answer = Answer(at_once=False)
    health = Health((HealthCheck("one", answer),), HealthOptions())
    gone, stays = asyncio.create_task(health.readiness()), asyncio.create_task(health.readiness())
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    answer.may.set()
    assert (await stays).ready


@running
async def test_the_log_has_a_line_for_each_change_and_the_error() -> None:
    clock, answer = Clock(), Answer()
    health = Health((HealthCheck("one", answer),), SHORT, clock)
    with capture_logs() as lines:
        for error in (None, OSError("refused"), OSError("refused"), None, None):
            answer.error = error
            await health.readiness()
            clock.now += CACHE_SECONDS
    assert [(line["event"], line.get("error")) for line in lines] == [
        ("a readiness check fails", "refused"),
        ("a readiness check passes again", None),
    ]


@running
async def test_what_is_closed_waits_for_nothing() -> None:
    answer = Answer(at_once=False)
    health = Health((HealthCheck("hangs", answer),), SHORT)
    await health.readiness()
    health.close()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait(left, timeout=patience(60))
    assert all(task.cancelled() for task in left)
