"""What can go wrong between an agent and its cell.

AgentProtocolError
├── EndpointUnavailable  the endpoint does not answer, or cannot reach its database: ask again later
├── SessionTaken         another agent has the session of the host: ask again later
├── SessionLost          the session is not the caller's any more: open another one
├── CellTakenBack        the cell's database was taken back to an earlier state: an operator has to decide
├── LateMessage          a message that was sent later has arrived before this one: it changed nothing
├── AccessRefused        the token is missing or wrong, or it is another host's
└── MessageRefused       the endpoint refuses the message; it would refuse it again
"""


class AgentProtocolError(Exception):
    """Any failure of a message from an agent to its cell.

    The message changed nothing, unless it is unavailable.
    """


class EndpointUnavailable(AgentProtocolError):
    """The endpoint does not answer, or its database does not. Whether the message arrived is not known."""


class SessionTaken(AgentProtocolError):
    """Another agent has the session of the host, and its polls have not stood still for long enough."""


class SessionLost(AgentProtocolError):
    """The session is not the caller's: another agent has taken it, or the cell's database lacks it."""


class CellTakenBack(AgentProtocolError):
    """The cell's database has not counted a poll that it had answered: it was taken back since."""


class LateMessage(AgentProtocolError):
    """A poll that was sent later has arrived before this one."""


class AccessRefused(AgentProtocolError):
    """The token is missing or not valid, or the host is not the token's."""


class MessageRefused(AgentProtocolError):
    """The endpoint refuses the message; the text says why."""
