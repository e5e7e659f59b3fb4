"""Makes an ASGI application of operations, and takes each request through the steps around a handler.

A request passes these steps. The first error ends them:

0. a request that the edge did not admit: 503
1. authentication, unless the path has an open operation: 401, 503
2. the service's own checks (`Conventions.receive`); a path with a NUL or an empty segment: 404
3. routing: 404, 405
4. the operation at the request's version, the media types: 404, 405, 415, 406
5. authorisation by the operation's rule: 403
6. query: 400; projects that the request may reach: 403; body: 413, 408, 400, or an error that has precedence
   over these (`Operation.precede`), 403 for a body that a further rule forbids (`Rule.of_body`), 403 for a
   filter that only operators may use
7. the handler. If the operation creates something and the request has a key: 400 for a malformed key, 409,
   422, or the stored answer (`roost.web.idempotency`)
8. for resources that belong to projects: the part of the result that the viewer may see (`visible`)
9. the result is encoded as JSON
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import falcon
import falcon.asgi
import msgspec
import structlog

from roost.model.visibility import visible
from roost.process.deadlines import Deadlines
from roost.process.logs.outages import OutageLines
from roost.process.metrics import catalogue as metrics
from roost.web.admission import REFUSAL_KEY, Overloaded
from roost.web.auth import Authenticator, IdentityUnavailable
from roost.web.conventions import Conventions
from roost.web.errors import (
    HTTPError,
    NotAcceptable,
    NotAllowed,
    NotFound,
    OutcomeUncertain,
    TooLarge,
    TooSlow,
    Unauthorised,
    Unavailable,
    Unsupported,
)
from roost.web.idempotency import KeptAnswers, KeyedRequests, NoAnswers, key_of
from roost.web.limits import Limits
from roost.web.operation import OPEN, Operation
from roost.web.policy import Policy, check_filters
from roost.web.request import Request, Response

_log = structlog.get_logger()
_PARAMETER = re.compile(r"\{(\w+)\}")
_BUSY = "The database cannot be reached or is busy; try again."


@dataclass(frozen=True)
class Kernel:
    """The parts of an application that all its operations share.

    - ``service``: the first argument of every handler.
    - ``unavailable``: the errors that mean that a database does not answer or is busy: status 503. One with
      ``outcome_known = False`` is answered by `OutcomeUncertain`.
    - ``middleware``: Falcon middleware that runs before the kernel's own.
    - ``body_seconds``: seconds within which a body must arrive.
    - ``answers``: stores the answers to requests with an idempotency key.
    - ``clock``: seconds since the epoch.
    """

    service: Any
    authenticator: Authenticator
    policy: Policy
    conventions: Conventions = field(default_factory=Conventions)
    unavailable: tuple[type[Exception], ...] = ()
    request_type: type[Request] = Request
    middleware: Sequence[Any] = ()
    body_seconds: float = Limits().body_seconds
    answers: KeptAnswers = field(default_factory=NoAnswers)
    clock: Callable[[], float] = time.time


def create_app(operations: Sequence[Operation], kernel: Kernel) -> falcon.asgi.App:  # type: ignore[type-arg]
    """Make the ASGI application that serves these operations."""
    app = falcon.asgi.App(request_type=kernel.request_type)
    app.resp_options.default_media_type = None  # type: ignore[assignment]  # an empty body has no type
    for middleware in kernel.middleware:
        app.add_middleware(middleware)
    open_paths = frozenset(operation.path for operation in operations if operation.rule is OPEN)
    backends = _Backends()
    app.add_middleware(_Gate(kernel, open_paths, backends))
    bodies, keyed = _Bodies(kernel.body_seconds), KeyedRequests(kernel.answers)
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    for path, methods in by_path.items():
        app.add_route(path, _Resource(kernel, methods, bodies, keyed))
    _add_error_handlers(app, kernel, backends)
    return app


class _Resource:
    """One path, with a responder ``on_…`` for each of its operations. ``methods``: their names by method."""

    def __init__(
        self,
        kernel: Kernel,
        operations: Mapping[str, Operation],
        bodies: "_Bodies",
        keyed: KeyedRequests,
    ) -> None:
        self.methods = {method: f"{method} {operation.path}" for method, operation in operations.items()}
        for method, operation in operations.items():
            setattr(self, f"on_{method.lower()}", _responder(kernel, operation, bodies, keyed))


class _Backends:
    """Logs outages of backends. An operation that failed in an outage ends it when it succeeds."""

    def __init__(self) -> None:
        self._lines = OutageLines(
            __name__, "a backend does not serve requests", "a backend serves requests again"
        )
        self._failing: set[str] = set()

    def failed(self, operation: str, error: Exception) -> None:
        """Note that a backend did not serve a request."""
        self._failing.add(operation)
        self._lines.failed(operation=operation, error=str(error))

    def succeeded(self, operation: str) -> None:
        """Note that a request was served."""
        if operation in self._failing and self._lines.succeeded():
            self._failing.clear()


class _Gate:
    """Middleware for steps 1 to 3: authentication, the service's checks, methods that a path lacks."""

    def __init__(self, kernel: Kernel, open_paths: frozenset[str], backends: _Backends) -> None:
        self._backends = backends
        self._authenticator = kernel.authenticator
        self._conventions = kernel.conventions
        self._open_paths = open_paths

    async def process_request(self, req: Request, resp: Response) -> None:
        refusal: HTTPError | None = req.scope.get(REFUSAL_KEY)
        if refusal is not None:
            self._conventions.receive(req)
            raise refusal
        if req.path not in self._open_paths:
            await self._authenticate(req)
        self._conventions.receive(req)
        # PostgreSQL stores no NUL. The router would take an empty segment for a path parameter.
        if "\x00" in req.path or (("//" in req.path or req.path[-1] == "/") and req.path != "/"):
            raise NotFound

    async def process_resource(
        self, req: Request, resp: Response, resource: _Resource, params: dict[str, str]
    ) -> None:
        operation = resource.methods.get(req.method)
        if operation is None:
            raise NotAllowed(
                "The method specified is not allowed for this resource.", tuple(resource.methods)
            )
        req.observation.operation = operation

    async def process_response(
        self, req: Request, resp: Response, resource: object, req_succeeded: bool
    ) -> None:
        if req_succeeded:
            self._backends.succeeded(req.observation.operation)
        resp.set_header("x-openstack-request-id", req.request_id)
        self._conventions.finish(req, resp)

    async def _authenticate(self, req: Request) -> None:
        try:
            identity = await self._authenticator.identify(req.headers, req.method, req.root_path + req.path)
        except IdentityUnavailable:
            raise Unavailable("The identity service cannot validate tokens now; try again.") from None
        if identity is None:
            error = Unauthorised("X-Auth-Token is missing or not valid.")
            if self._authenticator.challenge is not None:
                error.headers = {"www-authenticate": self._authenticator.challenge}
            raise error
        req.identity = req.observation.identity = identity


def _responder(kernel: Kernel, operation: Operation, bodies: "_Bodies", keyed: KeyedRequests) -> Any:
    """Return the coroutine function that takes one operation's requests through the steps from 4 on."""
    service, policy, conventions = kernel.service, kernel.policy, kernel.conventions
    handler, rule, query, encode = operation.handler, operation.rule, operation.query, msgspec.json.encode
    creates, scope = operation.creates, f"{operation.method} {operation.path}"
    of_projects = rule is not OPEN and rule.all_projects is not None

    def encoded(req: Request, answer: object) -> bytes:
        return encode(visible(answer, req.viewer) if of_projects else answer)

    uuids = frozenset(operation.uuids).intersection(_PARAMETER.findall(operation.path))

    async def respond(req: Request, resp: Response, **params: str) -> None:
        operation.check_present(req)
        for name in uuids:
            params[name] = params[name].lower()
        form = operation.body_type(req)
        if form is not None and operation.takes:
            _check_media_type(req, operation.takes)
        if operation.provides and not conventions.accepts(req, operation.provides):
            raise NotAcceptable(f"Only {' and '.join(operation.provides)} is provided")
        if rule is not OPEN:
            identity = req.identity
            policy.check(
                identity, rule.name, identity.project_id if rule.project is None else rule.project(req)
            )
        if query is not None:
            req.query = query.read(req)
        if rule is not OPEN and rule.all_projects is not None:
            req.viewer = policy.viewer(req.identity, rule.all_projects)
            req.projects = policy.reachable(req.identity, rule.all_projects, req.query)
            check_filters(req.query, req.viewer)
        if form is not None:
            try:
                req.body = operation.decode(await bodies.read(req, operation.largest_body), form)
            except HTTPError:
                await operation.precede(service, params)
                raise
            if rule is not OPEN and rule.of_body is not None:
                for name in rule.of_body(req.body):
                    policy.check(req.identity, name, req.identity.project_id)
        resp.status = operation.status
        if creates is not None and (key := key_of(req, creates, scope, params, kernel.clock())) is not None:
            req.encode_answer = partial(encoded, req)

            async def create() -> bytes:
                return encoded(req, await handler(service, req, resp, **params))

            resp.data = await keyed.once(req, resp, creates, key, create)
            resp.content_type = falcon.MEDIA_JSON
            return
        answer = await handler(service, req, resp, **params)
        if answer is not None:
            resp.content_type = falcon.MEDIA_JSON
            resp.data = encoded(req, answer)

    return respond


def _check_media_type(req: Request, taken: tuple[str, ...]) -> None:
    media_type = (req.content_type or "None").partition(";")[0].strip()
    if media_type not in taken:
        raise Unsupported(f"The media type {media_type} is not supported, use {' or '.join(taken)}")


class _Bodies:
    """Reads bodies, each within ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadlines = Deadlines(seconds)

    async def read(self, req: Request, largest: int) -> bytes:
        """Read the body of a request, of ``largest`` bytes at most.

        Raises:
            TooLarge: it is larger. It is not read to its end.
            TooSlow: it did not arrive in time. The server closes the connection, because the rest is unread.
        """
        raw = await self._deadlines.within(req.stream.read(largest + 1), self._late)
        if len(raw) > largest:
            raise TooLarge(f"A body may have at most {largest} bytes.")
        return raw

    def _late(self) -> TooSlow:
        return TooSlow(f"The body must arrive within {self._seconds:g} seconds.")


def _add_error_handlers(
    app: falcon.asgi.App,  # type: ignore[type-arg]
    kernel: Kernel,
    backends: _Backends,
) -> None:
    def refuse(req: Request, resp: Response, error: HTTPError) -> None:
        resp.status = error.status
        resp.set_headers(dict(error.headers))
        kernel.conventions.refuse(req, resp, error)

    async def refused(req: Request, resp: Response, error: HTTPError, _: object) -> None:
        if isinstance(error, Overloaded):
            metrics.OVERLOAD.labels(error.cause.name.lower()).inc()
        refuse(req, resp, error)

    async def refused_by_framework(req: Request, resp: Response, error: falcon.HTTPError, _: object) -> None:
        if isinstance(error, falcon.HTTPRouteNotFound):
            refuse(req, resp, kernel.conventions.unknown_path(req))
            return
        refusal = HTTPError(error.description or "")
        refusal.status = error.status_code
        refuse(req, resp, refusal)

    async def failed(req: Request, resp: Response, error: Exception, _: object) -> None:
        if isinstance(error, kernel.unavailable):
            backends.failed(req.observation.operation, error)
            summary = getattr(error, "summary", _BUSY)
            known = getattr(error, "outcome_known", True)
            refuse(req, resp, Unavailable(summary) if known else OutcomeUncertain(summary))
            return
        _log.error("request failed", method=req.method, path=req.path, exc_info=error)
        refuse(req, resp, HTTPError(f"Internal error; the log has it under {req.request_id}."))

    app.add_error_handler(Exception, failed)
    app.add_error_handler(falcon.HTTPError, refused_by_framework)
    app.add_error_handler(HTTPError, refused)
