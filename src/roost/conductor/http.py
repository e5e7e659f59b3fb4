"""Instances over HTTP, under ``/v1``: asking for them, looking at them, deleting them.

    POST   /v1/instances          202 {"request_id", "instances"}; durable when answered
    GET    /v1/instances          200 {"instances": [...]}; ?request_id= for those of one request
    GET    /v1/instances/{uuid}   200 one instance, with the reasons of its failed attempts
    DELETE /v1/instances/{uuid}   202; 409 while it is on its way to a cell

Errors have the form of all of ``/v1``.
"""

import asyncio
import uuid
from typing import Annotated, Literal

import falcon
import falcon.asgi
import msgspec

from roost.conductor.requests import Requests
from roost.conductor.super_conductor import SuperConductor
from roost.model.instance import BuildRequest, Fault, Instance
from roost.model.spec import Flavor, RequestSpec, ServerGroup
from roost.model.vocabulary import MAX_INT, MAX_NAME
from roost.placement.errors import BadRequest, Conflict, NotFound
from roost.placement.http.auth import Authenticator, identify
from roost.placement.http.errors import add_error_handlers
from roost.placement.http.request import Request, Response
from roost.placement.v1.errors import answer_error

SCHEDULING = "scheduling"
"""State of an instance that is accepted and not in a cell yet."""

MOST_AT_ONCE = 1000
"""So many instances can be asked for in one request."""

_Count = Annotated[int, msgspec.Meta(ge=1, le=MOST_AT_ONCE)]
_Amount = Annotated[int, msgspec.Meta(ge=0, le=MAX_INT)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]


class WantedFlavor(msgspec.Struct, forbid_unknown_fields=True):
    """A flavor in a request."""

    vcpus: _Amount
    memory_mb: _Amount
    disk_gb: _Amount = 0
    name: _Name = "custom"
    extra_specs: dict[str, str] = {}


class WantedGroup(msgspec.Struct, forbid_unknown_fields=True):
    """A server group in a request; ``hosts`` are those of its members so far."""

    uuid: _Name
    policy: Literal["affinity", "anti-affinity"]
    hosts: tuple[str, ...] = ()
    max_server_per_host: Annotated[int, msgspec.Meta(ge=1, le=MAX_INT)] = 1


class WantedInstances(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request. ``min_count`` is ``count`` if it is not given: all or none."""

    flavor: WantedFlavor
    count: _Count = 1
    min_count: _Count | None = None
    availability_zone: str | None = None
    group: WantedGroup | None = None
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()
    requested_host: str | None = None
    scheduler_hints: dict[str, str] = {}


class ShownInstance(msgspec.Struct):
    """An instance as it is shown."""

    uuid: str
    request_id: str
    project_id: str
    user_id: str
    flavor: str
    state: str
    cell: str | None = None
    host: str | None = None
    attempt: int = 0
    reason: str | None = None
    faults: list[Fault] = []


def create_app(
    conductor: SuperConductor, requests: Requests, authenticator: Authenticator
) -> falcon.asgi.App:  # type: ignore[type-arg]
    """The API of a super conductor."""
    app = falcon.asgi.App(request_type=Request)
    app.add_middleware(_Gate(authenticator))
    resources = _Resources(conductor, requests)
    app.add_route("/v1/instances", resources)
    app.add_route("/v1/instances/{uuid}", resources, suffix="one")
    add_error_handlers(app, answer_error)
    return app


class _Gate:
    """Middleware: who asks."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def process_request(self, req: Request, resp: Response) -> None:
        await identify(self._authenticator, req, resp)

    async def process_response(
        self, req: Request, resp: Response, resource: object, req_succeeded: bool
    ) -> None:
        resp.set_header("x-openstack-request-id", req.request_id)


class _Resources:
    def __init__(self, conductor: SuperConductor, requests: Requests) -> None:
        self._conductor = conductor
        self._requests = requests

    async def on_post(self, req: Request, resp: Response) -> None:
        identity = req.identity
        for name in (identity.user_id, identity.project_id or ""):
            if len(name) > MAX_NAME:
                raise BadRequest(f"user and project have {MAX_NAME} characters at most, not {len(name)}")
        try:
            wanted = msgspec.json.decode(await req.stream.read(), type=WantedInstances)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadRequest(str(error)) from error
        if wanted.min_count is not None and wanted.min_count > wanted.count:
            raise BadRequest(f"min_count {wanted.min_count} is more than count {wanted.count}")
        request = BuildRequest(
            request_id=f"req-{uuid.uuid4()}",
            spec=RequestSpec(
                project_id=identity.project_id or "",
                user_id=identity.user_id,
                flavor=Flavor(**msgspec.structs.asdict(wanted.flavor)),
                availability_zone=wanted.availability_zone,
                group=ServerGroup(**msgspec.structs.asdict(wanted.group)) if wanted.group else None,
                required_traits=wanted.required_traits,
                forbidden_traits=wanted.forbidden_traits,
                requested_host=wanted.requested_host,
                scheduler_hints=wanted.scheduler_hints,
            ),
            instances=tuple(str(uuid.uuid4()) for _ in range(wanted.count)),
            min_count=wanted.min_count or wanted.count,
        )
        await self._conductor.accept(request)
        resp.status = falcon.HTTP_202
        _answer(resp, {"request_id": request.request_id, "instances": request.instances})

    async def on_get(self, req: Request, resp: Response) -> None:
        request_id = req.get_param("request_id")
        shown = [
            _scheduling(request, name)
            for request in await self._requests.waiting()
            if request_id in (None, request.request_id)
            for name in request.instances
        ]
        # A request is waiting until all of its instances are in cells: those that are, are shown there.
        cells = self._conductor.cells
        found = await asyncio.gather(*(cell.every(request_id) for cell in cells.values()))
        settled = {
            instance.uuid: _shown(instance, name)
            for name, instances in zip(cells, found, strict=True)
            for instance in instances
        }
        shown = [instance for instance in shown if instance.uuid not in settled]
        _answer(resp, {"instances": [*settled.values(), *shown]})

    async def on_get_one(self, req: Request, resp: Response, uuid: str) -> None:
        shown = await self._in_cell(uuid)
        if shown is None:
            for request in await self._requests.waiting():
                if uuid in request.instances:
                    shown = _scheduling(request, uuid)
            # It may have gone from there to its cell between the two looks.
            shown = shown or await self._in_cell(uuid)
        if shown is None:
            raise NotFound(f"no instance {uuid}")
        _answer(resp, shown)

    async def on_delete_one(self, req: Request, resp: Response, uuid: str) -> None:
        if not await self._conductor.delete([uuid]):
            if any(uuid in request.instances for request in await self._requests.waiting()):
                raise Conflict(f"instance {uuid} is on its way to a cell; try again")
            # It may have arrived there between the two looks.
            if not await self._conductor.delete([uuid]):
                raise NotFound(f"no instance {uuid}")
        resp.status = falcon.HTTP_202

    async def _in_cell(self, uuid: str) -> ShownInstance | None:
        for name, cell in self._conductor.cells.items():
            found = await cell.find([uuid])
            if uuid in found:
                return _shown(found[uuid], name, await cell.faults_of(uuid))
        return None


def _shown(instance: Instance, cell: str, faults: list[Fault] | None = None) -> ShownInstance:
    return ShownInstance(
        uuid=instance.uuid,
        request_id=instance.request_id,
        project_id=instance.project_id,
        user_id=instance.user_id,
        flavor=instance.flavor,
        state=instance.state,
        cell=cell,
        host=instance.host,
        attempt=instance.attempt,
        reason=instance.reason,
        faults=faults or [],
    )


def _scheduling(request: BuildRequest, name: str) -> ShownInstance:
    return ShownInstance(
        uuid=name,
        request_id=request.request_id,
        project_id=request.spec.project_id,
        user_id=request.spec.user_id,
        flavor=request.spec.flavor.name,
        state=SCHEDULING,
    )


def _answer(resp: Response, value: object) -> None:
    resp.content_type = falcon.MEDIA_JSON
    resp.data = msgspec.json.encode(value)
