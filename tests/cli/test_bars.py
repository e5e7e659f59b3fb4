"""Shares as bars."""

import pytest

from roost.cli.bars import bar, bar_of, percent


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (1.0, "████"),
        (0.5, "██"),
        (0.0, ""),
        (0.25 / 8, "▏"),
        (0.0001, "▏"),
        (0.999999, "████"),
        (7.0, "████"),
    ],
)
def test_bar_is_as_long_as_the_share(share: float, shown: str) -> None:
    assert bar(share, 4) == shown


def test_eighths_are_told_apart() -> None:
    assert [bar(eighths / 32, 4) for eighths in range(8, 17)] == [
        "█", "█▏", "█▎", "█▍", "█▌", "█▋", "█▊", "█▉", "██",
    ]  # fmt: skip


def test_part_of_nothing_has_no_bar() -> None:
    assert (bar_of(0, 0), bar_of(1, 3, 3), bar_of(0, 3, 3)) == ("", "█", "")


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 10, "0%"),
        (1, 1000, "<1%"),
        (1, 100, "1%"),
        (1, 3, "33%"),
        (999, 1000, "99%"),
        (7, 7, "100%"),
        (5, 4, "125%"),
        (0, 0, "0%"),
        (2, 0, "200%"),
    ],
)
def test_percents_tell_nothing_from_little_and_all_from_nearly_all(part: int, whole: int, shown: str) -> None:
    assert percent(part, whole) == shown
