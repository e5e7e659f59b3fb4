"""Numbers on the command line, within bounds, with errors in plain words."""

import math
import re

import click

_WHOLE = re.compile(r"[+-]?[0-9]+")
_LONGEST = 40
"""Most characters of an invalid value that an error shows."""


def _bounds(least: float | None, most: float | None, *, is_open: bool = False) -> str:
    """Return the bounds in words. ``is_open``: ``least`` itself is not allowed."""
    if least is None:
        return "" if most is None else f"at most {most}"
    if most is None:
        return f"{'more than' if is_open else 'at least'} {least}"
    return f"{'more than ' if is_open else ''}{least} to {most}"


class WholeNumber(click.IntRange):
    """A whole number, from ``min`` to ``max``."""

    name = "number"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number. Raises `BadParameter`, which names the value and the bounds."""
        if isinstance(value, str) and not _WHOLE.fullmatch(value.strip()):
            self.fail(f"{value[:_LONGEST]!r} is not a whole number", param, ctx)
        try:
            return super().convert(int(value), param, ctx)
        except click.BadParameter:
            self.fail(f"{value} is out of bounds: it must be {self._describe_range()}", param, ctx)

    def _describe_range(self) -> str:
        return _bounds(self.min, self.max)


class Number(click.FloatRange):
    """A finite number, from ``min`` to ``max``; with ``min_open`` more than ``min``."""

    name = "number"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Raises `BadParameter`, which names the value and the bounds."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        # Neither nan nor infinity is an amount, and nan is within all bounds.
        if not math.isfinite(number):
            self.fail(f"{str(value)[:_LONGEST]!r} is not a number", param, ctx)
        try:
            return super().convert(number, param, ctx)
        except click.BadParameter:
            self.fail(f"{value} is out of bounds: it must be {self._describe_range()}", param, ctx)

    def _describe_range(self) -> str:
        return _bounds(self.min, self.max, is_open=self.min_open)
