"""The command of the operators that powers the machine of a host off, as by its BMC."""

from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Protocol

from roost.model.secrets import redacted_text
from roost.process.command import run_command

MOST_OF_OUTPUT = 300
"""Characters of the output of a command that are told, the last ones."""


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
        failure, status, output = await run_command((*self._argv, host), self._seconds)
        if failure is None:
            return PowerOff(True)
        words = f"the fence command {failure}"
        if status is not None:
            # As one text, so that what follows a secret on further lines is hidden too.
            told = " ".join(redacted_text(output).split())[-MOST_OF_OUTPUT:]
            words = f"{words}: {told or 'it says nothing'}"
        return PowerOff(False, words)
