"""The command of the operators that powers the machine of a host off, as by its BMC."""

import asyncio
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Sequence
from tempfile import TemporaryFile
from typing import IO, NamedTuple, Protocol

from roost.model.secrets import redacted_text
from roost.model.text import error_text
from roost.process.command import kill_group

MOST_OF_STDERR = 300
"""Characters of the error output of a command that are told, the last ones."""


MOST_READ = 65_536
"""Bytes of the error output that are read."""


class PowerOff(NamedTuple):
    """The result of a command. ``is_off``: the machine is certainly off. ``words``: why it failed."""

    is_off: bool
    words: str = ""


class FenceCommand(Protocol):
    """Powers machines off."""

    def power_off(self, host: str, /) -> Awaitable[PowerOff]:
        """Power off the machine of a host, and return whether it certainly is."""


class FenceProcess:
    """Runs a command for each host. ``argv``: its words before the host's name. ``seconds``: its limit."""

    def __init__(self, argv: Sequence[str], seconds: float) -> None:
        self._argv = tuple(argv)
        self._seconds = seconds

    async def power_off(self, host: str, /) -> PowerOff:
        """Run the command for a host; it and its children are killed when its time is over."""
        if host.startswith("-"):
            return PowerOff(False, f"the fence command would take the name {host} for an option")
        # A file: a child that the command leaves behind may keep a pipe open for ever.
        with TemporaryFile() as said:
            try:
                status = await self._run(host, said)
            except OSError as error:
                return PowerOff(False, f"the fence command cannot be run: {error_text(error)}")
            if status is None:
                return PowerOff(False, f"the fence command took longer than {self._seconds:g} seconds")
            if status == 0:
                return PowerOff(True)
            said.seek(0)
            text = said.read(MOST_READ).decode(errors="replace")
        told = " ".join(redacted_text(text).split())[-MOST_OF_STDERR:] or "it says nothing"
        return PowerOff(False, f"the fence command ended with status {status}: {told}")

    async def _run(self, host: str, said: IO[bytes]) -> int | None:
        """Return the exit status; None: it took too long. ``said``: its error output. Raises OSError."""
        process = await asyncio.create_subprocess_exec(
            *self._argv, host, stdin=DEVNULL, stdout=DEVNULL, stderr=said, start_new_session=True
        )
        try:
            async with asyncio.timeout(self._seconds):
                return await process.wait()
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                kill_group(process)
                await process.wait()
