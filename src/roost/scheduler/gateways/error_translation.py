"""Placement over HTTP is asked: each of its errors becomes one of the scheduler's."""

from collections.abc import Awaitable
from typing import TypeVar

import httpx
import msgspec

from roost.placement.errors import BadRequest, Conflict, PlacementError
from roost.scheduler.errors import PlacementFailed, PlacementRefused, PlacementUnavailable
from roost.scheduler.selection.claim_result import Verdict, is_outage, named, result_of

T = TypeVar("T")


async def asked(answer: Awaitable[T]) -> T:
    """What placement answers.

    Raises:
        BadRequest, Conflict: as placement gives them.
        PlacementUnavailable: placement is away; `PlacementFailed` for any other error after which trying
            again may help.
        PlacementRefused: for any other error.
    """
    try:
        return await answer
    except (BadRequest, Conflict):
        raise
    except (KeyError, TypeError, AttributeError) as error:
        raise PlacementRefused(f"this is no Placement API: {named(error)}") from error
    except (httpx.HTTPError, httpx.InvalidURL, msgspec.MsgspecError, PlacementError, OSError) as error:
        result = result_of(error)
        if result.verdict is not Verdict.RETRY:
            raise PlacementRefused(result.reason) from error
        kind = PlacementUnavailable if is_outage(error) else PlacementFailed
        raise kind(result.reason) from error
