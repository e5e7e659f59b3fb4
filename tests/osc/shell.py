"""A process that runs one command of the ``openstack`` client after the other.

Starting the client takes seconds, and there are many commands. Each line of standard input is a list of
arguments in JSON, each line of standard output what came of it.
"""

import contextlib
import io
import json
import sys

from openstackclient import shell


def run(arguments: list[str]) -> dict[str, object]:
    """Exit status and output of a command."""
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        try:
            status = shell.OpenStackShell().run(arguments)
        except SystemExit as left:
            status = left.code
    return {"status": status or 0, "output": said.getvalue(), "errors": complained.getvalue()}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
