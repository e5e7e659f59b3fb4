"""Errors between an agent and its cell.

AgentProtocolError
├── EndpointUnavailable  the endpoint does not answer, or cannot reach its database: ask again later
├── SessionTaken         another agent has the session of the host: ask again later
├── SessionLost          the session is not the caller's any more: open another one
├── CellTakenBack        the cell's database was restored to an earlier state: an operator has to decide
├── LateMessage          a later message has arrived before this one, which changed nothing
├── AccessRefused        the token is missing or wrong, or it is another host's
└── MessageRefused       the endpoint refuses the message; it would refuse it again
"""


class AgentProtocolError(Exception):
    """Any failure of a message from an agent to its cell.

    The message changed nothing, except perhaps with `EndpointUnavailable`.
    """


class EndpointUnavailable(AgentProtocolError):
    """The endpoint or its database does not answer. It is not known whether the message arrived."""


class SessionTaken(AgentProtocolError):
    """Another agent has the session of the host, and its last poll is not long enough ago."""


class SessionLost(AgentProtocolError):
    """The session is not the caller's: another agent has taken it, or the cell's database lacks it."""


class CellTakenBack(AgentProtocolError):
    """The cell's database lacks a poll that it had counted: it was restored to an earlier state since."""


class LateMessage(AgentProtocolError):
    """A poll that was sent later has arrived before this one."""


class AccessRefused(AgentProtocolError):
    """The token is missing or not valid, or the host is not the token's."""


class MessageRefused(AgentProtocolError):
    """The endpoint refuses the message; the text says why."""
