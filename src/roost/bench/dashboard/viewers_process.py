"""The process of `roost.bench.dashboard.viewers`, as the benchmark runs it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from roost.bench.dashboard import viewers
from roost.bench.dashboard.viewers import ViewedPages, ViewersPlan
from roost.bench.errors import BenchError
from roost.bench.server_process import die_with_parent


class ViewersProcess:
    """The process of the viewers, which view until `stop`."""

    def __init__(self, plan: ViewersPlan) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", viewers.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(plan) + b"\n")
        self._process.stdin.flush()
        if self._process.stdout.readline() != b"ready\n":
            self.kill()
            raise BenchError("the viewers of the dashboard did not begin")

    def stop(self) -> ViewedPages:
        """End all streams. Raises `BenchError` if the process has failed."""
        found, _ = self._process.communicate()
        if self._process.returncode:
            raise BenchError(f"the viewers of the dashboard ended with {self._process.returncode}")
        return msgspec.json.decode(found, type=ViewedPages)

    def kill(self) -> None:
        """Kill the process if it runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@contextmanager
def viewing(plan: ViewersPlan) -> Iterator[ViewersProcess]:
    """Run the viewers. Raises `BenchError` if they do not begin."""
    process = ViewersProcess(plan)
    try:
        yield process
    finally:
        process.kill()
