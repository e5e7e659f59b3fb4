"""A request, with the identity, projects, query and body that the kernel adds to it."""

import random
import re
from typing import Any

import falcon.asgi

from roost.auth import NOBODY, Identity
from roost.web.dispatch import Message
from roost.web.observation import Observation, observation_of
from roost.web.policy import NO_PROJECT, Projects

Response = falcon.asgi.Response

_REQUEST_ID = re.compile(r"req-[a-f0-9]{8}(-[a-f0-9]{4}){3}-[a-f0-9]{12}")


class Request(falcon.asgi.Request):
    """A request to any service.

    ``observation`` is what the edge and the kernel know of the request. The kernel sets the other attributes
    before it calls a handler:

    - ``identity``: the user, from the token.
    - ``projects``: the projects whose resources the user may reach, if the rule has ``all_projects``.
    - ``query``: the query parameters, as the operation's query reader returns them.
    - ``body``: the decoded body, of the operation's body type.
    """

    __slots__ = ("body", "identity", "observation", "projects", "query", "request_id")

    def __init__(self, scope: Message, *args: object, **kwargs: object) -> None:
        super().__init__(scope, *args, **kwargs)  # type: ignore[arg-type]
        self.observation: Observation = observation_of(scope)
        self.identity: Identity = NOBODY
        self.projects: Projects = NO_PROJECT
        self.query: Any = None
        self.body: Any = None
        self.request_id = _new_id()

    @property
    def log_id(self) -> str:
        """The request's id, and the id in the header X-Openstack-Request-Id, if that has the form of one."""
        cause = self.get_header("x-openstack-request-id") or ""
        return f"{self.request_id} for {cause}" if _REQUEST_ID.fullmatch(cause) else self.request_id


def _new_id() -> str:
    """A random UUID of version 4 after ``req-``. It is no secret, so the fastest random source suffices."""
    digits = f"{random.getrandbits(128):032x}"
    return f"req-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
