"""The options of evacuation by itself."""

from roost.process.command import words_of
from roost.process.options import OptionStruct, option

LEAST_SECONDS = 60.0
"""The shortest silence: the session of a host is free after as long."""


def _after(seconds: float) -> float:
    if seconds and seconds < LEAST_SECONDS:
        raise ValueError(f"a session stands still for {LEAST_SECONDS:g} seconds before its host is silent")
    return seconds


class EvacuationOptions(OptionStruct, frozen=True, kw_only=True, group="conductor"):
    """The options of evacuation by itself. ``command``: the words of the command before the host's name."""

    after: float = option(
        0.0,
        name="evacuate_after",
        parse=_after,
        min=0.0,
        help="Seconds of silence after which a host is evacuated by itself, if it is proved that no guest "
        "runs there: by the fence of its agent, which may need longer, or by fence_command. At least 60. "
        "0: only operators evacuate hosts.",
    )
    command: tuple[str, ...] = option(
        "",
        name="fence_command",
        parse=words_of("[conductor] fence_command"),
        help="A command that powers off the machine of a silent host whose agent has no fence. It gets the "
        "host's name as its last argument, and no shell reads it. Exit status 0 says that the machine is "
        "certainly off. It may be run again for the same host.",
    )
    command_seconds: float = option(
        60.0,
        name="fence_command_seconds",
        min=1.0,
        help="Seconds after which fence_command is killed, and has failed.",
    )
    unguarded: bool = option(
        False,
        name="trust_unguarded_fences",
        help="The fence of an agent without a watchdog is a proof too. If such an agent is killed or stands "
        "still, its guests run on, and run twice once they are evacuated.",
    )
