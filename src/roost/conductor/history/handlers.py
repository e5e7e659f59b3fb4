"""The handler of histories over HTTP."""

from typing import Protocol

from roost.conductor.history.types import InstanceHistory
from roost.conductor.history.views import Histories
from roost.model.visibility import visible
from roost.web.errors import NotFound
from roost.web.request import Request, Response


class Service(Protocol):
    """What the handler needs of the conductor's service."""

    @property
    def histories(self) -> Histories: ...


async def show_history(service: Service, req: Request, resp: Response, uuid: str) -> InstanceHistory:
    """Show what happened to an instance, from its acceptance to its end: who asked for what, when, and where,
    and what came of it.

    Instances that are deleted have a history for some time. A project sees its own, without hosts and what is
    told of them.
    """
    found = await service.histories.find(uuid)
    if found is None or not req.projects.include(found.project_id):
        raise NotFound(f"no instance {uuid}")
    return found.told([visible(each, req.viewer) for each in found.runs])
