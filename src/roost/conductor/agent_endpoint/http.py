"""The endpoint of a cell's agents over HTTP, under ``/v1/agents``: one operation for each question.

A request has the token of a host, and may concern that host alone.
"""

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Final

import falcon.asgi
from oslo_policy.policy import RuleDefault

from roost.agent.protocol import errors
from roost.agent.protocol.questions import Call, CellEndpoint
from roost.agent.protocol.wire import CODES, LARGEST_MESSAGE, PATH, ROUTES, Route, host_of
from roost.conductor.agent_endpoint.tokens import HOST_ROLE
from roost.storage import StorageError
from roost.web.app import Kernel
from roost.web.app import create_app as create_web_app
from roost.web.auth import Authenticator
from roost.web.auth.rules import PolicyRules
from roost.web.errors import BadRequest, Conflict, Forbidden, HTTPError, Unavailable
from roost.web.operation import Operation
from roost.web.policy import Policy, Rule
from roost.web.request import Request, Response

RULE: Final = "agents:ask"
DEFAULT_RULES: Final = {RULE: f"role:{HOST_ROLE}"}
"""The policy rule of all questions of agents without a policy file."""

PATHS: Final = (PATH,)
"""The path of the endpoint: it, and all below it."""


class HttpSessionTaken(Conflict):
    """Another agent has the session of the host: ask again later."""

    code: ClassVar[str] = "agents.session_taken"


class HttpSessionLost(Conflict):
    """The session is not the caller's any more: open another one."""

    code: ClassVar[str] = "agents.session_lost"


class HttpCellTakenBack(Conflict):
    """The cell's database was taken back to an earlier state: an operator has to accept it."""

    code: ClassVar[str] = "agents.cell_taken_back"


class HttpLateMessage(Conflict):
    """A poll that was sent later has arrived before this one."""

    code: ClassVar[str] = "agents.late_message"


class HttpAccessRefused(Forbidden):
    """The token is another host's, or a provider is."""

    code: ClassVar[str] = "agents.access_refused"


class HttpMessageRefused(BadRequest):
    """The endpoint refuses the message, and would refuse it again."""

    code: ClassVar[str] = "agents.message_refused"


class HttpEndpointUnavailable(Unavailable):
    """The database of the cell, or placement, does not answer: ask again later."""

    code: ClassVar[str] = "agents.unavailable"


_REFUSALS: dict[type[errors.AgentProtocolError], type[HTTPError]] = {
    CODES[each.code]: each
    for each in (
        HttpSessionTaken,
        HttpSessionLost,
        HttpCellTakenBack,
        HttpLateMessage,
        HttpAccessRefused,
        HttpMessageRefused,
        HttpEndpointUnavailable,
    )
}


def _operation(route: Route) -> Operation:
    return Operation(
        "POST",
        route.path,
        Rule(RULE),
        _handler(route),
        body=route.question,
        largest_body=LARGEST_MESSAGE,
        answer=route.answer,
        status=200 if route.answer is not None else 204,
        provides=() if route.answer is None else ("application/json",),
        raises=tuple(_REFUSALS.values()),
    )


def _handler(route: Route) -> Callable[[CellEndpoint, Request, Response], Awaitable[object]]:
    """Return the handler of a question, with the question's docstring for the OpenAPI document."""

    async def ask(service: CellEndpoint, req: Request, resp: Response) -> object:
        question: Call[Any] = req.body
        host = req.identity.user_id
        if host_of(question) != host:
            raise HttpAccessRefused(f"the token is that of host {host}, not of host {host_of(question)}")
        try:
            answer: object = await service.ask(question)
        except errors.AgentProtocolError as error:
            raise _REFUSALS[type(error)](str(error)) from error
        return answer

    ask.__name__ = route.question.__name__
    ask.__doc__ = route.question.__doc__
    return ask


OPERATIONS: Final = tuple(map(_operation, ROUTES))


def default_rules() -> list[RuleDefault]:
    """The rules without a policy file."""
    return [RuleDefault(name, check) for name, check in DEFAULT_RULES.items()]


def create_app(
    endpoint: CellEndpoint, authenticator: Authenticator, rules: PolicyRules | None = None
) -> falcon.asgi.App:  # type: ignore[type-arg]
    """Return the application of a cell's endpoint. ``rules`` are by default those without a policy file."""
    policy = Policy(rules or PolicyRules(default_rules(), None, True))
    return create_web_app(OPERATIONS, Kernel(endpoint, authenticator, policy, unavailable=(StorageError,)))
