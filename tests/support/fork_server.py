"""Imports the commands of `roost` once and runs each in a fork, which starts in milliseconds.

Run by `support.forked`, with the descriptors of a listening socket and of one that closes with the tests.
A connection is one command: a line of JSON with the descriptors of the standard streams comes in; the
process id and the exit status go out. The command is killed if the connection closes before it ends.
"""

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import time

from roost.bench.server_process import die_with_parent
from roost.cli.main import COMMANDS, main


def accept_commands(listening: socket.socket, tests: socket.socket) -> None:
    """Return in the fork of each command, ready to run it. The server itself ends with the tests."""
    while True:
        readable, _, _ = select.select([listening, tests], [], [])
        if tests in readable:
            os._exit(0)
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            tests.close()
            if begin(connection):
                return
            os._exit(0)
        connection.close()
        while _reap():
            pass


def _reap() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def begin(connection: socket.socket) -> bool:
    """Fork the command that a connection asks for, and tell its end. Returns True in the fork."""
    text, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not text.endswith(b"\n"):
        text += connection.recv(1 << 20)
    pid = os.fork()
    if pid == 0:
        connection.close()
        become(json.loads(text), streams)
        return True
    for each in streams:
        os.close(each)
    connection.sendall(b"%d\n" % pid)
    ended = os.pidfd_open(pid)
    readable, _, _ = select.select([ended, connection], [], [])
    if ended not in readable:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):  # the test has gone on without the status
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    return False


def become(asked: dict[str, object], streams: list[int]) -> None:
    """Give this process the arguments, environment, folder and streams of a command."""
    die_with_parent()
    if asked["session"]:
        os.setsid()
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(str(asked["folder"]))
    os.environ.clear()
    os.environ.update(asked["environment"])
    time.tzset()
    sys.argv = asked["command"]


if __name__ == "__main__":
    for command in COMMANDS.values():
        importlib.import_module(command.partition(":")[0])
    gc.freeze()
    accept_commands(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))
    main()
