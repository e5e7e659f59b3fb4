"""oslo.messaging in a process: of which commands, and what it does to the standard library."""

import subprocess
import sys


def python(*statements: str) -> str:
    """The output of statements in a process that fails on warnings."""
    command = [sys.executable, "-W", "error", "-c", "\n".join(statements)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_other_commands_do_not_import_it() -> None:
    shown = python(
        "import sys, roost.cli.main, roost.cli.programs, roost.server.programs",
        "print([name for name in ('oslo_messaging', 'eventlet') if name in sys.modules])",
    )
    assert shown == "[]"


def test_nothing_is_patched() -> None:
    shown = python(
        "import roost.nova.rpc.server",
        "from eventlet import patcher",
        "modules = ('os', 'select', 'socket', 'thread', 'time')",
        "print([each for each in modules if patcher.is_monkey_patched(each)])",
    )
    assert shown == "[]"
