"""The judgement of a silent host: the proof that it is dead, or why there is none."""

from typing import Literal, NamedTuple

from roost.conductor.evacuation.options import EvacuationOptions
from roost.model.fence import needed_silence
from roost.state.cell_database.host_fences import ToldFence
from roost.state.leases import Lease

CLOSED = (
    "its agent was stopped in order, or it is not known that it was not: its guests may run. Start the "
    "agent, or evacuate the host by an operator's word"
)
NO_FENCE = "its agent has no fence, and there is no fence_command"
UNGUARDED = (
    "the fence of its agent has no watchdog, so the agent may stand still while guests run; there is no "
    "fence_command, and trust_unguarded_fences is not set"
)


class Judgement(NamedTuple):
    """The next step with a silent host.

    ``act``: wait; say that nothing proves its death; take it for dead by the fence of its agent; have a
    command power it off. ``words``: the evidence, or why there is none.
    """

    act: Literal["wait", "unproved", "fence", "command"]
    words: str = ""


def judged(session: Lease, silent: float, told: ToldFence | None, options: EvacuationOptions) -> Judgement:
    """Judge a host by its session, the seconds of its silence, and what its agent has told of its fence."""
    if silent < options.after or not session.vacant:
        return Judgement("wait")
    if told is None or not told.was_cut_off(session):
        return Judgement("unproved", CLOSED)
    fence = told.fence
    if fence is not None and (fence.guarded or options.unguarded):
        if silent < needed_silence(fence):
            return Judgement("wait")
        return Judgement("fence", f"fenced by its agent after {fence.seconds:g} s of silence")
    if options.command:
        return Judgement("command")
    return Judgement("unproved", NO_FENCE if fence is None else UNGUARDED)
