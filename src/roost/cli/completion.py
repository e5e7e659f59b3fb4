"""``roost completion``: the scripts that complete commands and options in a shell."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_ROOST_COMPLETE"
"""The environment variable with which a script requests completions. click derives it from the name."""


@click.command(epilog="Example: roost completion bash > /etc/bash_completion.d/roost")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands and options of roost in a shell.

    bash and zsh: source the output, as in 'source <(roost completion bash)'. fish: write it to
    ~/.config/fish/completions/roost.fish.
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell
    click.echo(kind(click.get_current_context().find_root().command, {}, "roost", VARIABLE).source())
