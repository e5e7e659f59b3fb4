"""The agents' protocol over HTTPS: the path of each question, and the error of each code.

A question is the JSON body of a POST request, its answer the body of the response. Unknown members are
ignored, so that cells and agents of neighbouring versions understand each other.
"""

from typing import Any, NamedTuple

from roost.agent.protocol.errors import (
    AccessRefused,
    AgentProtocolError,
    CellTakenBack,
    EndpointUnavailable,
    LateMessage,
    MessageRefused,
    SessionLost,
    SessionTaken,
)
from roost.agent.protocol.questions import (
    Call,
    Closing,
    Confirm,
    Opening,
    Poll,
    ReadClaims,
    ReadTree,
    RenewToken,
    Reshape,
    WriteProviders,
)
from roost.agent.protocol.types import Opened, Polled, ProviderState, Reshaped, TreeClaim, Written

PATH = "/v1/agents"
"""The common path of all messages."""

POLL = f"{PATH}/poll"
"""The path of polls, which wait long for their answer."""

LARGEST_MESSAGE = 16 * 2**20
"""Largest size of a message to the endpoint, in bytes."""


class Route(NamedTuple):
    """The path of a question, and the type of its answer; None if the response has no body."""

    path: str
    question: type[Call[Any]]
    answer: Any


ROUTES = (
    Route(f"{PATH}/open", Opening, Opened),
    Route(POLL, Poll, Polled),
    Route(f"{PATH}/confirm", Confirm, bool | None),
    Route(f"{PATH}/read-tree", ReadTree, tuple[ProviderState, ...]),
    Route(f"{PATH}/write-providers", WriteProviders, Written),
    Route(f"{PATH}/read-claims", ReadClaims, dict[str, TreeClaim]),
    Route(f"{PATH}/reshape", Reshape, Reshaped),
    Route(f"{PATH}/renew-token", RenewToken, str),
    Route(f"{PATH}/close", Closing, None),
)

CODES: dict[str, type[AgentProtocolError]] = {
    "agents.session_taken": SessionTaken,
    "agents.session_lost": SessionLost,
    "agents.cell_taken_back": CellTakenBack,
    "agents.late_message": LateMessage,
    "agents.access_refused": AccessRefused,
    "agents.message_refused": MessageRefused,
    "agents.unavailable": EndpointUnavailable,
}
"""The error class of each error code in a response."""


def host_of(question: Any) -> str:
    """Return the host of a question: only its agent may ask it."""
    host: str = question.host if isinstance(question, Opening) else question.session.host
    return host
