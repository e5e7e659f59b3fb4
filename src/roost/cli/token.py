"""``roost token``: the service tokens of a cloud without Keystone."""

from difflib import get_close_matches
from pathlib import Path

import click

from roost.cli.command_group import CommandGroup
from roost.cli.configuration import placement_source, tell_options
from roost.cli.options import config_files, settings
from roost.cli.output import action_as_json, as_json, print_json, print_table
from roost.model.errors import OperatorError
from roost.placement.options import read_options
from roost.process.option_source import Source
from roost.web.auth.rules import PolicyRules
from roost.web.auth.service_tokens import add_token, read_tokens, revoke_token

ROLES = frozenset({"admin", "manager", "member", "reader", "service"})
"""The roles that Keystone has by default."""

_file = click.option(
    "--file", "file", type=click.Path(path_type=Path), help="The file of tokens; else [api] tokens_file."
)


@click.group(cls=CommandGroup)
def token() -> None:
    """Make, list and revoke service tokens, for [api] auth_strategy = tokens.

    Services read the file again within a second of a change.
    """


@token.command(epilog="Example: roost token add operator --role admin --file /etc/roost/tokens.toml")
@click.argument("name")
@click.option("--user", help="The user that the token proves.  [default: NAME]")
@click.option("--project", default="service", show_default=True, help="The project of the user.")
@click.option("--role", "roles", multiple=True, required=True, help="A role of the user; several add up.")
@_file
@config_files
@settings
@action_as_json
def add(
    name: str,
    user: str | None,
    project: str,
    roles: tuple[str, ...],
    file: Path | None,
    config_files: tuple[str, ...],
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make a token with the name NAME and print it. The file keeps its digest alone.

    A role is refused unless Keystone has it by default or a policy file names it.
    """
    source = placement_source(config_files, settings)
    _check_roles(source, roles)
    made = add_token(_chosen(file, source), name, user or name, project, roles)
    if as_json:
        print_json({"name": name, "token": made})
    else:
        click.echo(made)


@token.command("list", epilog="Example: roost token list --file /etc/roost/tokens.toml")
@_file
@config_files
@settings
@as_json
def list_tokens(
    file: Path | None, config_files: tuple[str, ...], settings: tuple[str, ...], as_json: bool
) -> None:
    """List the names of tokens and what they prove."""
    tokens = read_tokens(_chosen(file, placement_source(config_files, settings)))
    if as_json:
        print_json(
            [
                {"name": name, "user": each.user, "project": each.project, "roles": each.roles}
                for name, each in tokens.items()
            ]
        )
    else:
        rows = [(name, each.user, each.project, ", ".join(each.roles)) for name, each in tokens.items()]
        print_table(("name", "user", "project", "roles"), rows)


@token.command(epilog="Example: roost token revoke operator --file /etc/roost/tokens.toml")
@click.argument("name")
@_file
@config_files
@settings
def revoke(name: str, file: Path | None, config_files: tuple[str, ...], settings: tuple[str, ...]) -> None:
    """Revoke the token with the name NAME."""
    revoke_token(_chosen(file, placement_source(config_files, settings)), name)


def _check_roles(source: Source, roles: tuple[str, ...]) -> None:
    """Raise `OperatorError` for a role that no policy rule allows anything."""
    known = ROLES | PolicyRules((), source, True).roles
    for role in roles:
        if role.lower() not in known:
            near = get_close_matches(role.lower(), sorted(known), 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
            raise OperatorError(
                f"no rule names the role {role!r}: {hint} "
                "(--config-file names the policy files of further roles)"
            )


def _chosen(file: Path | None, source: Source) -> Path:
    tell_options(source, "token", schedules=True)
    if file is not None:
        return file
    configured = read_options(source).tokens_file
    if configured is None:
        raise OperatorError("no file of tokens: give --file, or set tokens_file in [api]")
    return Path(configured)
