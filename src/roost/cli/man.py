"""``roost man``: manual pages, made from the commands with their options and help texts.

Source: man-pages(7) for the sections and their order, groff_man(7) for the macros.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

import roost
from roost.cli.failures import MEANINGS
from roost.model.errors import OperatorError
from roost.process.durable_file import why_no_directory

SECTION = "1"
STATUS = tuple((str(status), meaning) for status, meaning in MEANINGS.items())


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


def manual_pages(
    command: click.Command, path: Sequence[str], parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the manual pages of a command and of the commands below it.

    Args:
        path: the words of the command, as in ``("roost", "db", "verify")``.
        parent: the context of the command above, whose settings a command inherits.

    Yields:
        Name and text of each page, as in ``("roost-db-verify", ".TH ...")``.
    """
    context = click.Context(command, parent, info_name=path[-1], **command.context_settings)
    below = _below(command, context)
    yield "-".join(path), _page(command, context, path, below)
    for name, each in below:
        yield from manual_pages(each, (*path, name), context)


def _below(command: click.Command, context: click.Context) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return []
    found = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [(name, each) for name, each in found if each is not None and not each.hidden]


def _page(
    command: click.Command,
    context: click.Context,
    path: Sequence[str],
    below: list[tuple[str, click.Command]],
) -> str:
    name = "-".join(path)
    paragraphs = _paragraphs(command.help or "")
    summary = paragraphs[0].partition(". ")[0].rstrip(".") if paragraphs else name
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH "{name.upper()}" "{SECTION}" "" "Roost {roost.__version__}" "Roost"',
        *(".SH NAME", rf"{_text(name)} \- {_text(summary[:1].lower() + summary[1:])}"),
        *(".SH SYNOPSIS", rf"\fB{_text(' '.join(path))}\fR {_text(usage)}"),
        ".SH DESCRIPTION",
    ]
    for number, paragraph in enumerate(paragraphs):
        lines += [".PP"] * (number > 0) + [_line(paragraph)]
    options = [each.get_help_record(context) for each in command.get_params(context)]
    lines += _definitions("OPTIONS", [record for record in options if record is not None])
    lines += _definitions("COMMANDS", [(each, one.get_short_help_str(200)) for each, one in below])
    if "Exit status:" not in (command.help or ""):
        lines += _definitions("EXIT STATUS", STATUS)
    if command.epilog and command.epilog.startswith("Example:"):
        lines += [".SH EXAMPLE", ".nf", _line(command.epilog.removeprefix("Example:").strip()), ".fi"]
    related = [path[:-1]] * (len(path) > 1) + [(*path, each) for each, _ in below]
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


def _paragraphs(text: str) -> list[str]:
    return [" ".join(each.split()) for each in re.split(r"\n\s*\n", text.strip()) if each.strip()]


def _text(text: str) -> str:
    r"""Escape text for roff. Hyphens become ``\-``, so that options can be copied from a terminal."""
    return text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")


def _line(text: str) -> str:
    r"""Escape a line for roff, and a dot at its beginning, which would start a macro."""
    text = _text(text)
    return rf"\&{text}" if text.startswith(".") else text
