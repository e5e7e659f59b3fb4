"""Numbers on the command line: what is none, or out of bounds, is told in plain words."""

from collections.abc import Iterator
from datetime import datetime

import click
import pytest

from roost.cli.main import roost_command
from roost.cli.numbers import Number, WholeNumber
from roost.cli.records import TimeParameter
from support.processes import run_roost


def options(
    command: click.Command = roost_command, path: str = "roost"
) -> Iterator[tuple[str, click.Parameter]]:
    """All parameters of all commands, each with the words that lead to it."""
    for parameter in command.params:
        yield f"{path} {parameter.name}", parameter
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                yield from options(inner, f"{path} {name}")


NUMBERS = [
    (words, option)
    for words, option in options()
    if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
]


@pytest.mark.parametrize(("words", "option"), NUMBERS, ids=[words for words, _ in NUMBERS])
@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999", "x", ""])
def test_every_number_of_every_command_is_a_finite_one(
    words: str, option: click.Parameter, text: str
) -> None:
    assert isinstance(option.type, Number | WholeNumber), words
    with pytest.raises(click.BadParameter) as refused:
        option.type.convert(text, option, None)
    meant = "whole number" if isinstance(option.type, WholeNumber) else "number"
    assert refused.value.message == f"{text!r} is not a {meant}"


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        (WholeNumber(0), "-1", "-1 is out of bounds: it must be at least 0"),
        (WholeNumber(1, 9), "10", "10 is out of bounds: it must be 1 to 9"),
        (WholeNumber(max=9), "10", "10 is out of bounds: it must be at most 9"),
        (Number(0, min_open=True), "0", "0 is out of bounds: it must be more than 0"),
        (Number(0, 1), "1.5", "1.5 is out of bounds: it must be 0 to 1"),
        (WholeNumber(0), "1.5", "'1.5' is not a whole number"),
    ],
)
def test_a_number_out_of_bounds_is_told_with_the_bounds(kind: click.ParamType, text: str, says: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        kind.convert(text, None, None)
    assert refused.value.message == says


def test_numbers_are_read() -> None:
    assert WholeNumber(-5).convert("-3", None, None) == -3
    assert Number(0).convert("1.5e2", None, None) == 150.0


def test_help_has_bounds_in_words() -> None:
    told = run_roost("ask", "--help").stdout
    assert "--count NUMBER" in told
    assert "1 to 1000" in told
    assert "RANGE" not in told
    assert "x>=" not in told


@pytest.mark.parametrize(
    ("place", "says"),
    [("/dev/null", "it is a file, not a directory"), ("/dev/null/x", "a part of its path is a file, not a")],
)
@pytest.mark.parametrize("command", [("up",), ("replay", "demo")], ids=" ".join)
def test_a_data_directory_that_is_a_file_is_told(command: tuple[str, ...], place: str, says: str) -> None:
    ended = run_roost(*command, "--data-dir", place)
    assert ended.returncode == 2
    assert f"data directory {place} cannot be used: {says}" in ended.stderr


@pytest.mark.parametrize("text", ["yesterday", "nan", "26.11.2026", ""])
def test_a_time_that_is_none_is_told_with_how_it_is_written(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no time: write it as 2026-11-26, 2026-11-26T08:00 or"):
        TimeParameter().convert(text, None, None)
    assert TimeParameter().convert("2026-11-26T08:00", None, None) == datetime(2026, 11, 26, 8)
