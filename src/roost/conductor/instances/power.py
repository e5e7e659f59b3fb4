"""The operations by which users stop their instances and start them again."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from roost.conductor.hosts.watch import ServiceWatch, check_feature
from roost.conductor.instances.instance_cell import cell_of
from roost.conductor.instances.operations import ALL_PROJECTS, ShowsInstances, is_reachable
from roost.conductor.instances.operations import PATH as INSTANCES
from roost.conductor.instances.types import ShownInstance
from roost.conductor.requester import requester_of
from roost.conductor.super_conductor import SuperConductor
from roost.model.instance import ChangeRefused, Instance, Requester
from roost.model.service_version import POWER, Feature
from roost.process.context import Context
from roost.state.api_database.request_reads import Requests
from roost.state.cell_database.power import switch_power
from roost.web.errors import Conflict, NotFound
from roost.web.idempotency import Creation
from roost.web.operation import Operation
from roost.web.policy import PROJECT_WRITER, Rule
from roost.web.request import Request, Response


class ChangesInstances(ShowsInstances, Protocol):
    """The part of the conductor's service that words on instances need."""

    @property
    def conductor(self) -> SuperConductor: ...

    @property
    def requests(self) -> Requests: ...

    @property
    def watch(self) -> ServiceWatch: ...


async def request_power(
    context: Context, *, instance: str, runs: bool, by: Requester
) -> Instance | ChangeRefused | None:
    """Have an instance stopped, or started again; None: it is unknown, in no cell yet, or deleted.

    Raises `StorageError`.
    """
    cell = await cell_of(context, instance)
    if cell is None:
        return None
    switch = switch_power(instance=instance, runs=runs, by=by, at=context.clock())
    return await context.write(f"cell/{cell}", switch)


async def stop_instance(service: ChangesInstances, req: Request, resp: Response, uuid: str) -> ShownInstance:
    """Stop the guest of an instance. The word is durable when it is answered; its host carries it out later.

    Disks and claim are kept. An instance that is stopped already is no error.
    """
    return await _switch(service, req, uuid, runs=False)


async def start_instance(service: ChangesInstances, req: Request, resp: Response, uuid: str) -> ShownInstance:
    """Start the guest of an instance that is stopped, or lost, as after a restart of its host.

    The word is durable when it is answered. An instance that runs already is no error.
    """
    return await _switch(service, req, uuid, runs=True)


async def _switch(service: ChangesInstances, req: Request, uuid: str, *, runs: bool) -> ShownInstance:
    async def ask() -> Instance | ChangeRefused | None:
        return await request_power(service.conductor.context, instance=uuid, runs=runs, by=requester_of(req))

    return await change_instance(service, req, uuid, ask)


async def change_instance(
    service: ChangesInstances,
    req: Request,
    uuid: str,
    ask: Callable[[], Awaitable[Instance | ChangeRefused | None]],
    feature: Feature = POWER,
) -> ShownInstance:
    """Have ``ask`` say a word on an instance that the request may reach; returns the instance then.

    ``feature``: needed for it. Raises `NotFound`, and `Conflict` for a word that is refused.
    """
    mapping = await service.requests.mapping(uuid)
    if mapping is None or not await is_reachable(service, req, mapping):
        raise NotFound(f"no instance {uuid}")
    check_feature(service.watch, feature)
    asked = await ask()
    if isinstance(asked, ChangeRefused):
        raise Conflict(asked.reason)
    shown = None if asked is None else await service.instances.find(uuid)
    if shown is None:
        raise NotFound(f"no instance {uuid} in a cell")
    return shown


POWER_RULES: Final = {
    "conductor:instances:stop": PROJECT_WRITER,
    "conductor:instances:start": PROJECT_WRITER,
}
"""The policy rules as they are without a policy file. Source: Nova's, of servers."""

POWER_OPERATIONS: Final = tuple(
    Operation(
        "POST",
        f"{INSTANCES}/{{uuid}}/{verb}",
        Rule(f"conductor:instances:{verb}", all_projects=ALL_PROJECTS),
        handler,
        answer=ShownInstance,
        status=202,
        raises=(Conflict,),
        creates=Creation(atomic=False),
    )
    for verb, handler in (("stop", stop_instance), ("start", start_instance))
)
