"""The view of pages that need an API database, in a process without one."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import msgspec

from roost.dashboard.service import DashboardService
from roost.model.visibility import shown_whole
from roost.web.request import Request

NO_API_DATABASE = (
    "This process has no API database, so it knows no cells, instances and events: set connection in "
    "[api_database] of its configuration."
)


class AbsentView(msgspec.Struct, frozen=True):
    """The reason why a page has nothing to show."""

    absent: str = NO_API_DATABASE


shown_whole(AbsentView)


def of_cloud(view: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Return the view of a page that needs an API database: `AbsentView` in a process without one.

    ``view``: ``view(service, cloud, req, **path_parameters)``.
    """

    @wraps(view)
    async def made(service: DashboardService, req: Request, **params: str) -> Any:
        if service.cloud is None:
            return AbsentView()
        return await view(service, service.cloud, req, **params)

    return made


def is_absent(view: Any) -> bool:
    """Return whether a page has nothing to show."""
    return isinstance(view, AbsentView)
