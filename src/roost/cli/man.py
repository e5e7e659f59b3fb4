"""``roost man``: manual pages, made from the commands with their options and help texts.

Source: man-pages(7) for the sections and their order, groff_man(7) for the macros.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

import roost
from roost.cli.command_description import CommandDescription, describe_commands
from roost.model.errors import OperatorError
from roost.process.durable_file import why_no_directory

SECTION = "1"


@click.command(epilog="Example: roost man /usr/local/share/man/man1")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def man(directory: Path) -> None:
    """Write the manual pages of all commands into a directory, which is created if it is missing.

    There is one page for each command: roost(1), roost-serve(1), roost-db-verify(1) and so on.
    """
    root = click.get_current_context().find_root()
    pages = list(manual_pages(root.command, ("roost",)))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in pages:
            (directory / f"{name}.{SECTION}").write_text(text)
    except OSError as error:
        raise OperatorError(
            f"cannot write the manual pages to {directory}: {why_no_directory(error)}"
        ) from error
    click.echo(f"{len(pages)} page(s) written to {directory}", err=True)


def manual_pages(command: click.Command, path: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the manual pages of a command and of the commands below it.

    ``path``: the words of the command, as in ``("roost", "db", "verify")``.

    Yields:
        Name and text of each page, as in ``("roost-db-verify", ".TH ...")``.
    """
    for described in describe_commands(command, path):
        yield "-".join(described.path), _page(described)


def _page(command: CommandDescription) -> str:
    name, summary = "-".join(command.path), command.summary
    lines = [
        f'.TH "{name.upper()}" "{SECTION}" "" "Roost {roost.__version__}" "Roost"',
        *(".SH NAME", rf"{_text(name)} \- {_text(summary[:1].lower() + summary[1:])}"),
        *(".SH SYNOPSIS", rf"\fB{_text(' '.join(command.path))}\fR {_text(command.usage)}"),
        ".SH DESCRIPTION",
    ]
    for number, paragraph in enumerate(command.paragraphs):
        lines += [".PP"] * (number > 0) + [_line(paragraph)]
    lines += _definitions("OPTIONS", command.options)
    lines += _definitions("COMMANDS", command.commands)
    lines += _definitions("EXIT STATUS", command.statuses)
    if command.example is not None:
        lines += [".SH EXAMPLE", ".nf", _line(command.example), ".fi"]
    related = [command.path[:-1]] * (len(command.path) > 1)
    related += [(*command.path, each) for each, _ in command.commands]
    if related:
        references = ", ".join(rf"\fB{_text('-'.join(each))}\fR({SECTION})" for each in related)
        lines += [".SH SEE ALSO", references]
    return "\n".join(lines) + "\n"


def _definitions(title: str, entries: Sequence[tuple[str, str]]) -> list[str]:
    if not entries:
        return []
    lines = [f".SH {title}"]
    for term, text in entries:
        lines += [".TP", rf"\fB{_text(term)}\fR", _line(text)]
    return lines


def _text(text: str) -> str:
    r"""Escape text for roff. Hyphens become ``\-``, so that options can be copied from a terminal."""
    return text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")


def _line(text: str) -> str:
    r"""Escape a line for roff, and a dot at its beginning, which would start a macro."""
    text = _text(text)
    return rf"\&{text}" if text.startswith(".") else text
