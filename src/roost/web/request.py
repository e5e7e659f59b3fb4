"""A request, with the identity, projects, query and body that the kernel adds to it."""

from collections.abc import Callable
from typing import Any

import falcon.asgi
import msgspec

from roost.model.idempotency import IdempotencyKey, KeyedAnswer
from roost.model.visibility import Viewer
from roost.web.auth import NOBODY, Identity
from roost.web.dispatch import Message
from roost.web.observation import Observation, observation_of
from roost.web.policy import NO_PROJECT, Projects

Response = falcon.asgi.Response


class Request(falcon.asgi.Request):
    """A request to any service.

    ``observation`` is the record of the request by edge and kernel. The kernel sets the other attributes
    before it calls a handler:

    - ``identity``: the user, from the token.
    - ``projects``: the projects whose resources the user may reach, if the rule has ``all_projects``.
    - ``viewer``: the role in which the user views them; the kernel shows the parts of the answer that it may
      see.
    - ``query``: the query parameters, as the operation's query reader returns them.
    - ``body``: the decoded body, of the operation's body type.
    - ``idempotency_key``: the client's key, for operations that create something. ``answer_status``: the
      status of its answer. ``encode_answer``: encodes the part of it that the viewer may see.
      ``answer_kept``: the handler has stored the answer itself, by `keyed`.
    """

    __slots__ = (
        "answer_kept",
        "answer_status",
        "body",
        "encode_answer",
        "idempotency_key",
        "identity",
        "observation",
        "projects",
        "query",
        "request_id",
        "viewer",
    )

    def __init__(self, scope: Message, *args: object, **kwargs: object) -> None:
        super().__init__(scope, *args, **kwargs)  # type: ignore[arg-type]
        self.observation: Observation = observation_of(scope)
        self.identity: Identity = NOBODY
        self.projects: Projects = NO_PROJECT
        self.viewer = Viewer.PROJECT
        self.query: Any = None
        self.body: Any = None
        self.idempotency_key: IdempotencyKey | None = None
        self.answer_kept = False
        self.answer_status = 200
        self.encode_answer: Callable[[object], bytes] = msgspec.json.encode
        self.request_id = self.observation.ids.own

    def keyed(self, answer: object) -> KeyedAnswer | None:
        """Return the answer to store in the transaction that creates; None for a request without a key.

        ``answer``: the value that the handler is going to return.
        """
        self.answer_kept = True
        if self.idempotency_key is None:
            return None
        return KeyedAnswer(self.idempotency_key, self.answer_status, self.encode_answer(answer))
