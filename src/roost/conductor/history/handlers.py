"""The handler of histories over HTTP."""

from typing import Protocol

from roost.conductor.history.types import InstanceHistory
from roost.conductor.history.views import Histories
from roost.model.visibility import visible
from roost.web.errors import NotFound
from roost.web.request import Request, Response


class HistoryService(Protocol):
    """The part of the conductor's service that the handler needs."""

    @property
    def histories(self) -> Histories: ...


async def show_history(service: HistoryService, req: Request, resp: Response, uuid: str) -> InstanceHistory:
    """Show the actions on an instance from its acceptance to its end, with requesters, times, hosts, results.

    Deleted instances have a history for some time. A project sees those of its own instances, without hosts.
    """
    found = await service.histories.find(uuid)
    if found is None or not req.projects.include(found.project_id):
        raise NotFound(f"no instance {uuid}")
    return found.told([visible(each, req.viewer) for each in found.runs])
