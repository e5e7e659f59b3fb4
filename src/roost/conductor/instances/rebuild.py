"""The operation by which users have their instances made anew, from another image or from the same one."""

import uuid as uuids
from typing import Final

import msgspec

from roost.conductor.context import SuperConductorContext
from roost.conductor.instances.instance_cell import cell_of
from roost.conductor.instances.operations import ALL_PROJECTS
from roost.conductor.instances.operations import PATH as INSTANCES
from roost.conductor.instances.power import ChangesInstances, change_instance
from roost.conductor.instances.types import ShownInstance, WantedRebuild
from roost.conductor.requester import requester_of
from roost.model.instance import ChangeRefused, Instance, Requester
from roost.model.spec import Image, RequestedDestination, RequestSpec
from roost.records.redact import without_secrets
from roost.scheduler.errors import BadRequestSpec, NoValidHost
from roost.scheduler.request.scheduling_request import HostRequest
from roost.state.cell_database.arrivals import find_instances
from roost.state.cell_database.rebuilds import nodename_of, rebuild_instance, why_not_rebuilt
from roost.web.errors import Conflict
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import PROJECT_WRITER, Rule
from roost.web.request import Request, Response


async def request_rebuild(
    context: SuperConductorContext, *, instance: str, image: Image | None, word: str, by: Requester
) -> Instance | ChangeRefused | None:
    """Have an instance rebuilt; None: it is unknown, in no cell yet, or deleted.

    ``word``: drawn for the request; a repeated one has the same. With another image its host is judged by the
    filters that look at the image. Nothing is claimed: the instance keeps what it holds.

    Raises `StorageError`, and what the scheduler raises but `NoValidHost`.
    Source: ``rebuild_instance`` of Nova's ``conductor/manager.py``.
    """
    cell = await cell_of(context, instance)
    if cell is None:
        return None
    database = f"cell/{cell}"
    there = (await context.read(database, find_instances((instance,)))).get(instance)
    if there is None:
        return None
    if image is not None and there.spec is not None:
        image = _without_secrets(there.spec, image)
        if image != there.spec.image and why_not_rebuilt(there) is None:
            name = await context.read(database, nodename_of(there.node or ""))
            refusal = await _refusal_of(context, there, name, cell, image, by)
            if refusal is not None:
                return ChangeRefused(refusal)
    rebuild = rebuild_instance(instance=instance, image=image, word=word, by=by, at=context.clock())
    return await context.write(database, rebuild)


def _without_secrets(spec: RequestSpec, image: Image) -> Image:
    return without_secrets(msgspec.structs.replace(spec, image=image)).image or image


async def _refusal_of(
    context: SuperConductorContext,
    instance: Instance,
    nodename: str | None,
    cell: str,
    image: Image,
    by: Requester,
) -> str | None:
    """Return why the host of an instance cannot run another image; None if it can."""
    assert instance.spec is not None
    spec = msgspec.structs.replace(
        instance.spec,
        operation="rebuild",
        image=image,
        requested_destination=RequestedDestination(host=instance.host, node=nodename, cell=cell),
        force_hosts=(),
        force_nodes=(),
        ignore_hosts=frozenset(),
    )
    try:
        await context.scheduler.select_destinations(
            HostRequest(spec, (instance.uuid,), request_id=by.request_id)
        )
    except NoValidHost as none:
        return f"the host of the instance cannot run this image: {none.reason}"
    except BadRequestSpec as error:
        # Its sentence names the host, which a project does not see.
        values = {"instance": instance.uuid, "error": str(error)}
        context.log("a host cannot be judged for a rebuild", values, "warning")
        return "the host of the instance cannot be judged now: ask again later"
    return None


async def rebuild(service: ChangesInstances, req: Request, resp: Response, uuid: str) -> ShownInstance:
    """Have the guest of an instance made anew on its host, from another image or from the same one.

    Its disks are lost. The word is durable when it is answered. Host and claim stay; if the guest cannot be
    made, the instance is lost and can be rebuilt again. A stopped instance stays stopped. Another image must
    pass the filters that look at the image, on the host of the instance.
    """
    wanted: WantedRebuild = req.body
    key = req.idempotency_key

    async def ask() -> Instance | ChangeRefused | None:
        return await request_rebuild(
            service.conductor.context,
            instance=uuid,
            image=None if wanted.image is None else Image(**msgspec.structs.asdict(wanted.image)),
            word=str(uuids.uuid4()) if key is None else key.uuid(f"rebuild/{key.request}"),
            by=requester_of(req),
        )

    return await change_instance(service, req, uuid, ask)


REBUILD_RULES: Final = {"conductor:instances:rebuild": PROJECT_WRITER}
"""The policy rule as it is without a policy file. Source: Nova's, of servers."""

REBUILD_OPERATIONS: Final = (
    Operation(
        "POST",
        f"{INSTANCES}/{{uuid}}/rebuild",
        Rule("conductor:instances:rebuild", all_projects=ALL_PROJECTS),
        rebuild,
        body=WantedRebuild,
        takes=(),  # curl -d says that its data is a form
        answer=ShownInstance,
        status=202,
        raises=(Conflict,),
        creates=Creation(atomic=False),
    ),
)
