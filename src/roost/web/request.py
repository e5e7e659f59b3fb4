"""A request, with the identity, projects, query and body that the kernel adds to it."""

from typing import Any

import falcon.asgi

from roost.auth import NOBODY, Identity
from roost.model.visibility import Viewer
from roost.web.dispatch import Message
from roost.web.observation import Observation, observation_of
from roost.web.policy import NO_PROJECT, Projects

Response = falcon.asgi.Response


class Request(falcon.asgi.Request):
    """A request to any service.

    ``observation`` is what the edge and the kernel know of the request. The kernel sets the other attributes
    before it calls a handler:

    - ``identity``: the user, from the token.
    - ``projects``: the projects whose resources the user may reach, if the rule has ``all_projects``.
    - ``viewer``: the role in which the user looks at them; the kernel shows of the answer what it may see.
    - ``query``: the query parameters, as the operation's query reader returns them.
    - ``body``: the decoded body, of the operation's body type.
    """

    __slots__ = ("body", "identity", "observation", "projects", "query", "request_id", "viewer")

    def __init__(self, scope: Message, *args: object, **kwargs: object) -> None:
        super().__init__(scope, *args, **kwargs)  # type: ignore[arg-type]
        self.observation: Observation = observation_of(scope)
        self.identity: Identity = NOBODY
        self.projects: Projects = NO_PROJECT
        self.viewer = Viewer.PROJECT
        self.query: Any = None
        self.body: Any = None
        self.request_id = self.observation.ids.own
