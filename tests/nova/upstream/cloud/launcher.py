"""Runs Nova's programs in forks of this process, which has imported them: a fork starts at once and shares
the memory of what is imported.

A fork is a process group of its own, which ends with a signal to it, and dies with this process.
"""

import ctypes
import os
import signal
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"  # before Nova is imported

_MODULES = {
    "nova-compute": "nova.cmd.compute",
    "nova-conductor": "nova.cmd.conductor",
    "nova-manage": "nova.cmd.manage",
    "nova-scheduler": "nova.cmd.scheduler",
}
_SIGNAL_AT_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG
_HYPERVISORS = Path(__file__).with_name("hypervisors")
_ended: dict[int, int] = {}


def load() -> None:
    """Import the programs. `start` does it if need be."""
    for module in _MODULES.values():
        import_module(module)
    # The option compute_driver names a module of nova.virt.
    import_module("nova.virt").__path__.append(str(_HYPERVISORS))


def start(arguments: list[str], log: str) -> int:
    """Start a program with its arguments; return the process id. Its output is appended to ``log``."""
    load()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _become(log)
            status = _run(arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return pid


def wait(pid: int, seconds: float) -> int | None:
    """Return the exit status of a program, less than 0 for a signal; None if it still runs after so long."""
    until = time.monotonic() + seconds
    while pid not in _ended:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            _ended[pid] = os.waitstatus_to_exitcode(status)
        elif time.monotonic() > until:
            return None
        else:
            time.sleep(0.01)
    return _ended[pid]


def _become(log: str) -> None:
    """Leave the streams, signals and process group of the launcher."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)
    nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for target, source in ((0, nothing), (1, output), (2, output)):
        os.dup2(source, target)
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__


def _run(arguments: list[str]) -> int:
    sys.argv = arguments
    try:
        status = import_module(_MODULES[arguments[0]]).main()
    except SystemExit as end:
        status = end.code
    sys.stdout.flush()
    return int(status or 0)
