"""The operation of histories, its handler and policy rule."""

from typing import Final, Protocol

from roost.conductor.history.types import InstanceHistory
from roost.conductor.history.views import Histories
from roost.model.visibility import visible
from roost.web.errors import NotFound
from roost.web.operation import Operation
from roost.web.policy import PROJECT_READER, Rule
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


_RULE: Final = "conductor:instances:history"

HISTORY_RULES: Final = {_RULE: PROJECT_READER}
"""The policy rule as it is without a policy file."""


def history_operation(path: str, all_projects: str) -> Operation:
    """Return the operation below the path of an instance.

    ``all_projects``: the policy rule that allows to see the whole history.
    """
    rule = Rule(_RULE, all_projects=all_projects)
    return Operation("GET", f"{path}/history", rule, show_history, answer=InstanceHistory)
