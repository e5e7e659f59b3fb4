"""`CommandDescription`: a command as manual pages and the site of documents have it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from roost.cli.failures import MEANINGS

_EXAMPLE = "Example:"


@dataclass(frozen=True)
class CommandDescription:
    """The texts of a command.

    - ``path``: the words of the command, as in ``("roost", "db", "verify")``.
    - ``usage``: the text that follows them on a command line, such as ``[OPTIONS] RUN``.
    - ``paragraphs``: those of its help, each on one line.
    - ``options``: the names and the help of each option.
    - ``commands``: the name and a sentence of each command below it.
    - ``statuses``: number and meaning of each exit status. Empty if the help says them.
    - ``example``: a command line; None without one.
    """

    path: tuple[str, ...]
    usage: str
    paragraphs: Sequence[str]
    options: Sequence[tuple[str, str]]
    commands: Sequence[tuple[str, str]]
    statuses: Sequence[tuple[str, str]]
    example: str | None

    @property
    def summary(self) -> str:
        """The first sentence of the help without its full stop, or the command if it has no help."""
        first = self.paragraphs[0] if self.paragraphs else " ".join(self.path)
        return first.partition(". ")[0].rstrip(".")


def describe_commands(
    command: click.Command, path: Sequence[str], parent: click.Context | None = None
) -> Iterator[CommandDescription]:
    """Yield the descriptions of a command and of all commands below it, without hidden ones.

    Args:
        path: the words of the command.
        parent: the context of the command above, whose settings a command inherits.
    """
    context = click.Context(command, parent, info_name=path[-1], **command.context_settings)
    below = _below(command, context)
    yield _describe(command, context, path, below)
    for name, each in below:
        yield from describe_commands(each, (*path, name), context)


def _below(command: click.Command, context: click.Context) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return []
    found = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [(name, each) for name, each in found if each is not None and not each.hidden]


def _describe(
    command: click.Command,
    context: click.Context,
    path: Sequence[str],
    below: list[tuple[str, click.Command]],
) -> CommandDescription:
    text, epilog = command.help or "", command.epilog or ""
    options = [each.get_help_record(context) for each in command.get_params(context)]
    return CommandDescription(
        path=tuple(path),
        usage=" ".join(command.collect_usage_pieces(context)),
        paragraphs=[" ".join(each.split()) for each in re.split(r"\n\s*\n", text.strip()) if each.strip()],
        options=[record for record in options if record is not None],
        commands=[(name, each.get_short_help_str(200)) for name, each in below],
        statuses=() if "Exit status:" in text else [(str(n), each) for n, each in MEANINGS.items()],
        example=epilog.removeprefix(_EXAMPLE).strip() if epilog.startswith(_EXAMPLE) else None,
    )
