"""``roost config``: all options of configuration files, as a table or as a sample file."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import click
from oslo_config import cfg

from roost.cli.command_group import CommandGroup
from roost.cli.configuration import CLIENTS, system_options
from roost.cli.output import document_as_json, print_json
from roost.placement.options import GROUPS
from roost.process.option_source import Setting, Source

_WIDTH = 100
"""Characters of a line of a sample file."""

_KEYSTONE = "keystone_authtoken"

_AUTH_TYPE = "password"
"""The authentication plugin whose options are in a sample file; others have other options."""

_TYPES = {"floating point value": "number", "multi valued": "list", "dict value": "pairs"}
"""Clearer names for some of oslo.config's types."""


class Described(NamedTuple):
    """An option as operators see it. ``default``: empty if there is none."""

    group: str
    option: str
    type: str
    default: str
    help: str


@click.group(cls=CommandGroup, invoke_without_command=True, epilog="Example: roost config --json")
@document_as_json
@click.pass_context
def config(context: click.Context, as_json: bool) -> None:
    """List all options of configuration files, as a table in Markdown.

    The options of keystoneauth1 and keystonemiddleware are not in the list: roost config sample has them.
    """
    if context.invoked_subcommand is not None:
        return
    described = list(describe_options())
    if as_json:
        print_json([each._asdict() for each in described])
    else:
        click.echo(markdown(described), nl=False)


@config.command(epilog="Example: roost config sample > roost.conf")
def sample() -> None:
    """Print a configuration file with every option, its help and its default, all commented out.

    All commands may share the file.
    """
    click.echo(sample_file({**all_groups(), **keystone_groups()}), nl=False)


def all_groups() -> Mapping[str, Sequence[cfg.Opt]]:
    """Return Roost's own options, by group."""
    from roost.state.api_database.cell_mappings import CELL0, cell_options, section_of

    return {**GROUPS, **system_options(), **cell_options(CELL0), **cell_options(section_of("NAME"))}


def keystone_groups() -> Mapping[str, Sequence[cfg.Opt]]:
    """Return the options of keystonemiddleware and keystoneauth1, and Roost's own in the same groups."""
    # Imported only here: this import takes as long as all others together.
    from roost.web.auth.keystone_credentials import client_options
    from roost.web.auth.token_check import known_options

    clients = CLIENTS
    source = Source(
        settings=tuple(Setting(group, "auth_type", _AUTH_TYPE) for group in (*clients, _KEYSTONE))
    )
    own = all_groups()
    found = {group: [*own.get(group, ()), *client_options(source, group)] for group in clients}
    return {**known_options(source.open(), source), **found}


def sample_file(groups: Mapping[str, Sequence[cfg.Opt]]) -> str:
    """Return a configuration file with options, each commented out."""
    parts = []
    for group, options in groups.items():
        parts.append(f"[{group}]\n")
        for option in {option.dest: option for option in options}.values():
            about = f"{' '.join((option.help or '').split())} ({_type(option).replace('`', '')})"
            lines = textwrap.wrap(about, _WIDTH, initial_indent="# ", subsequent_indent="# ")
            parts.append("\n".join([*lines, f"#{option.dest} = {_default(option)}".rstrip()]) + "\n")
    return "\n".join(parts)


def describe_options(groups: Mapping[str, Sequence[cfg.Opt]] | None = None) -> Iterator[Described]:
    """Describe the options of groups, by default of all of Roost's own."""
    for group, options in (all_groups() if groups is None else groups).items():
        for option in options:
            yield Described(group, option.dest, _type(option), _default(option), option.help or "")


def markdown(described: Sequence[Described]) -> str:
    """Return a table of options. Only the first row of a group names it."""
    lines = ["| group | option | type | default | |", "|---|---|---|---|---|"]
    shown = ""
    for each in described:
        group = "" if each.group == shown else f"`{each.group}`"
        default = f"`{each.default}`" if each.default else ""
        text = each.help.replace("|", "\\|")
        lines.append(f"| {group} | `{each.option}` | {each.type} | {default} | {text} |")
        shown = each.group
    return "\n".join(lines) + "\n"


def _type(option: cfg.Opt) -> str:
    choices = getattr(option.type, "choices", None)
    if choices:
        return " or ".join(f"`{choice}`" for choice in choices)
    # An option of another library may have a function as its type.
    name: str = getattr(option.type, "type_name", "string value")
    kind = _TYPES.get(name, name.removesuffix(" value"))
    low, high = getattr(option.type, "min", None), getattr(option.type, "max", None)
    bounds = [f"from {low:g}"] if low is not None else []
    bounds += [f"to {high:g}"] if high is not None else []
    return " ".join([kind, *bounds])


def _default(option: cfg.Opt) -> str:
    value = option.default
    if value is None or value in ([], {}, ""):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
