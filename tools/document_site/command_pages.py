"""A page for each command, with the commands below it, from their options and help texts."""

from collections.abc import Iterator, Mapping, Sequence

from document_site.markdown import (
    SitePage,
    block,
    code,
    definitions,
    heading,
    label_of,
    plain,
    table,
    toctree,
)
from roost.cli.command_description import CommandDescription, describe_commands
from roost.cli.main import roost_command

FOLDER = "reference/commands"


def command_pages() -> Iterator[SitePage]:
    """Yield the page of each command, and their index."""
    root, *described = describe_commands(roost_command, ("roost",))
    pages: dict[str, list[CommandDescription]] = {}
    for each in described:
        pages.setdefault(each.path[1], []).append(each)
    yield SitePage(f"{FOLDER}/index.md", _index(root, pages))
    for name, commands in pages.items():
        yield SitePage(f"{FOLDER}/{name}.md", "\n".join(map(_section, commands)))


def _index(root: CommandDescription, pages: Mapping[str, Sequence[CommandDescription]]) -> str:
    rows = [
        (f"[`roost {name}`]({name}.md)", plain(first.paragraphs[0])) for name, (first, *_) in pages.items()
    ]
    return "\n".join(
        (
            heading(1, "Commands"),
            f"{plain(' '.join(root.paragraphs))} Manual pages have the same: `roost man`.\n",
            table(("", ""), rows),
            toctree((f"roost {name}", name) for name in pages),
        )
    )


def _section(command: CommandDescription) -> str:
    depth = len(command.path) - 1
    name = " ".join(command.path)
    below = [
        (f"[`{name} {each}`](#{label_of('command', *command.path, each)})", plain(text))
        for each, text in command.commands
    ]
    parts = [
        heading(depth, code(name), label_of("command", *command.path)),
        *(f"{plain(each)}\n" for each in command.paragraphs),
        block(f"{name} {command.usage}"),
    ]
    if command.example is not None:
        parts += ["For example:\n", block(command.example, "bash")]
    if below:
        parts.append(table(("command", ""), below))
    if command.options:
        parts.append(definitions((code(term), plain(text)) for term, text in command.options))
    return "\n".join(parts)
