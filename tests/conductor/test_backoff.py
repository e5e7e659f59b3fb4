"""Pauses between attempts, and when work is given up."""

from roost.conductor.backoff import Backoff


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(first_seconds=0.5, longest_seconds=3.0)
    assert [backoff.pause(failures) for failures in (1, 2, 3, 4, 5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    assert backoff.pause(1_000_000) == 3.0


def test_work_is_given_up_after_so_many_attempts() -> None:
    assert [Backoff(attempts=3).exhausted(failures) for failures in (1, 2, 3, 4)] == [
        False,
        False,
        True,
        True,
    ]


def test_default_gives_up_after_about_two_minutes() -> None:
    backoff = Backoff()
    assert sum(backoff.pause(failures) for failures in range(1, backoff.attempts)) == 123.0
