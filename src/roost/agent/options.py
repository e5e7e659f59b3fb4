"""The options of agents: group ``agent``, and what all processes have."""

from roost.model.fence import Fence
from roost.process.logs import LogOptions
from roost.process.options import OptionStruct, option
from roost.process.tracing import TracingOptions


def _age(seconds: float) -> float:
    return seconds or float("inf")


class AgentTimes(OptionStruct, frozen=True, kw_only=True, group="agent"):
    """The times of an agent, in seconds.

    ``gather``: the longest wait of the poll after orders for their results, so that a quick result needs no
    message of its own. ``keep``: between two writes of the position to the state. ``token``: infinite: the
    agent never asks for a new one.
    """

    poll: float = option(
        20.0,
        name="poll_seconds",
        min=0.0,
        help="The longest wait of a poll. The cell may make it shorter.",
    )
    health: float = option(
        10.0,
        name="health_seconds",
        min=0.0,
        help="Seconds between two reports of a node whose guests or metrics change.",
    )
    report: float = option(
        60.0,
        name="report_seconds",
        min=0.1,
        help="Seconds between two looks of the driver at what the host has, for placement.",
    )
    refresh: float = option(
        300.0,
        name="refresh_seconds",
        min=0.1,
        help="Seconds between two looks at what others have changed of the host's providers.",
    )
    start: float = option(600.0, name="start_seconds", min=0.1, help="A guest must start within this time.")
    retry: float = option(
        1.0,
        name="retry_seconds",
        min=0.01,
        help="The pause before something that failed is done again. Each further pause is twice as long.",
    )
    longest_retry: float = option(
        30.0, name="longest_retry_seconds", min=0.01, help="The longest of these pauses."
    )
    gather: float = 0.3
    keep: float = 60.0
    token: float = option(
        86400.0,
        name="token_seconds",
        parse=_age,
        min=0.0,
        help="Seconds after which the agent asks for a new token. 0: never.",
    )

    def pause(self, failures: int) -> float:
        """Return the seconds to wait after ``failures`` in a row, before the next try."""
        doubled: float = self.retry * 2 ** min(max(failures, 1) - 1, 10)
        return min(doubled, self.longest_retry)


def _fence_seconds(seconds: float) -> float:
    if seconds and seconds < LEAST_FENCE_SECONDS:
        raise ValueError(f"a fence needs {LEAST_FENCE_SECONDS:g} seconds or more, as an answer may be lost")
    return seconds


LEAST_FENCE_SECONDS = 20.0
"""The shortest time of a fence."""

POLLS_OF_FENCE = 6
"""A poll waits for this part of the time of a fence at most: several may then be lost."""


class FenceOptions(OptionStruct, frozen=True, kw_only=True, group="agent"):
    """The options of the fence of a host (`roost.agent.fence`)."""

    seconds: float = option(
        0.0,
        name="fence_seconds",
        parse=_fence_seconds,
        min=0.0,
        help="Without an answer of its cell for so many seconds, the agent stops all guests of the host, so "
        "that the cell may have them run elsewhere. Longer than an outage of the cell's database that its "
        "hosts are to survive. 0: never.",
    )
    stop_seconds: float = option(
        60.0,
        name="fence_stop_seconds",
        min=4.0,
        help="The time in which the guests are stopped then. The watchdog resets the machine after half of "
        "it, so that they are also if the driver does not stop them.",
    )
    watchdog: str | None = option(
        None,
        name="fence_watchdog",
        help="The watchdog device of the machine, such as /dev/watchdog. Without it an agent that has ended "
        "or stands still stops nothing, and conductors do not rely on its fence by default.",
    )

    @property
    def fence(self) -> Fence | None:
        """The fence as the cell is told of it; None: there is none."""
        if not self.seconds:
            return None
        return Fence(self.seconds, self.stop_seconds, guarded=self.watchdog is not None)


class AgentOptions(OptionStruct, frozen=True, group="agent"):
    """The options of a process of agents."""

    driver: str = option(
        "simulated",
        help="The driver of the hosts: the name of an entry point of the group roost.agent.drivers, "
        "MODULE:ATTRIBUTE, simulated or libvirt.",
    )
    provider_config_location: str | None = option(
        None,
        help="A folder of files *.yaml, as Nova's provider configuration: custom inventories and traits of "
        "providers beside those of the driver. They are read at the start.",
    )
    times: AgentTimes = AgentTimes()
    fence: FenceOptions = FenceOptions()
    logs: LogOptions = LogOptions()
    tracing: TracingOptions = TracingOptions()
