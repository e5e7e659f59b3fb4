"""A machine that is restarted after an error."""

from collections.abc import Callable

from roost.machine.steps import Log, Machine, Sleep


async def lasting(name: str, begin: Callable[[], Machine[None]], pause: float = 1.0) -> None:
    """Run a machine; after an error, which is a defect, restart it in ``pause`` seconds.

    One unexpected row must not stop a part of a process's work for good. Ends when the machine ends.
    """
    while True:
        try:
            return await begin()
        except Exception as error:
            values = {"machine": name, "seconds": pause}
            await Log("a machine ended with an error, and is begun again", values, "error", error)
        await Sleep(pause)
