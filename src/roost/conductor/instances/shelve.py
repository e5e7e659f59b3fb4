"""The operations by which users shelve their instances, and have them run again on another host."""

import uuid as uuids
from typing import Final

from roost.conductor.instances.instance_cell import cell_of
from roost.conductor.instances.operations import ALL_PROJECTS
from roost.conductor.instances.operations import PATH as INSTANCES
from roost.conductor.instances.power import ChangesInstances, change_instance
from roost.conductor.instances.types import ShownInstance, WantedShelving
from roost.conductor.requester import requester_of
from roost.model.instance import ChangeRefused, Instance, Requester
from roost.model.service_version import SHELVES
from roost.process.context import Context
from roost.state.api_database.consumers import add_consumer
from roost.state.api_database.tables import API
from roost.state.cell_database.arrivals import find_instances
from roost.state.cell_database.shelves import (
    shelve_instance,
    unshelve_instance,
    why_not_unshelved,
)
from roost.web.errors import Conflict
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import PROJECT_WRITER, Rule
from roost.web.request import Request, Response


async def request_shelving(
    context: Context, *, instance: str, discards_disks: bool, word: str, by: Requester
) -> Instance | ChangeRefused | None:
    """Have an instance shelved; None: it is unknown, in no cell yet, or deleted.

    ``word``: drawn for the request; a repeated one has the same. Raises `StorageError`.
    """
    cell = await cell_of(context, instance)
    if cell is None:
        return None
    shelve = shelve_instance(
        instance=instance, discards_disks=discards_disks, word=word, by=by, at=context.clock()
    )
    return await context.write(f"cell/{cell}", shelve)


async def request_unshelving(
    context: Context, *, instance: str, consumer: str, by: Requester
) -> Instance | ChangeRefused | None:
    """Have a shelved instance run again on a host of its cell; None: as of `request_shelving`.

    ``consumer``: drawn for the request; a repeated one has the same. It is stored before the cell hears of
    it, so that its instance is known to whoever finds what it holds. Raises `StorageError`.
    """
    cell = await cell_of(context, instance)
    if cell is None:
        return None
    database = f"cell/{cell}"
    there = (await context.read(database, find_instances((instance,)))).get(instance)
    if there is not None and why_not_unshelved(there) is None:
        await context.write(API, add_consumer(consumer, instance))
    unshelve = unshelve_instance(instance=instance, consumer=consumer, by=by, at=context.clock())
    return await context.write(database, unshelve)


async def shelve(service: ChangesInstances, req: Request, resp: Response, uuid: str) -> ShownInstance:
    """Shelve an instance: its host destroys the guest, and its claim is freed.

    The word is durable when it is answered. The disks stay in the store that hosts share; where there is
    none, it is refused unless `discard_disks` says that they may be made anew from the image. An instance
    that is shelved already is no error.
    """
    wanted: WantedShelving = req.body
    key = req.idempotency_key

    async def ask() -> Instance | ChangeRefused | None:
        return await request_shelving(
            service.conductor.context,
            instance=uuid,
            discards_disks=wanted.discard_disks,
            word=str(uuids.uuid4()) if key is None else key.uuid(f"shelve/{key.request}"),
            by=requester_of(req),
        )

    return await change_instance(service, req, uuid, ask, SHELVES)


async def unshelve(service: ChangesInstances, req: Request, resp: Response, uuid: str) -> ShownInstance:
    """Have a shelved instance run again, on a host of its cell that the scheduler chooses now.

    The word is durable when it is answered. If no host takes it, the instance is shelved as before, with the
    reason. An instance that is about to run again is no error.
    """
    key = req.idempotency_key

    async def ask() -> Instance | ChangeRefused | None:
        return await request_unshelving(
            service.conductor.context,
            instance=uuid,
            consumer=str(uuids.uuid4()) if key is None else key.uuid(f"unshelve/{key.request}"),
            by=requester_of(req),
        )

    return await change_instance(service, req, uuid, ask, SHELVES)


SHELVE_RULES: Final = {
    "conductor:instances:shelve": PROJECT_WRITER,
    "conductor:instances:unshelve": PROJECT_WRITER,
}
"""The policy rules as they are without a policy file. Source: Nova's, of servers."""

SHELVE_OPERATIONS: Final = (
    Operation(
        "POST",
        f"{INSTANCES}/{{uuid}}/shelve",
        Rule("conductor:instances:shelve", all_projects=ALL_PROJECTS),
        shelve,
        body=WantedShelving,
        takes=(),  # curl -d says that its data is a form
        answer=ShownInstance,
        status=202,
        raises=(Conflict,),
        creates=Creation(atomic=False),
    ),
    Operation(
        "POST",
        f"{INSTANCES}/{{uuid}}/unshelve",
        Rule("conductor:instances:unshelve", all_projects=ALL_PROJECTS),
        unshelve,
        answer=ShownInstance,
        status=202,
        raises=(Conflict,),
        creates=Creation(atomic=False),
    ),
)
