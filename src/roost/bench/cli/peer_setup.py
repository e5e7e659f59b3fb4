"""``roost bench peer-setup``."""

from pathlib import Path

import click

from roost.bench.cli.options import directory
from roost.bench.peer import VERSION, set_up_peer


@click.command("peer-setup", epilog="Example: roost bench peer-setup")
@directory
def peer_setup(folder: Path) -> None:
    """Install OpenStack Placement at pinned versions into a virtual environment in the bench directory.

    An environment that is there with these versions is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    peer = set_up_peer(folder)
    click.echo(f"OpenStack Placement {VERSION} is in {peer.folder}")
