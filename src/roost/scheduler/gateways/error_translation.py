"""Translates errors of placement over HTTP into errors of the scheduler."""

from collections.abc import Awaitable
from typing import TypeVar

import httpx
import msgspec

from roost.placement.errors import BadRequest, Conflict, PlacementError
from roost.scheduler.errors import PlacementFailed, PlacementRefused, PlacementUnavailable
from roost.scheduler.selection.claim_result import ClaimVerdict, is_outage, named, result_of

T = TypeVar("T")


async def translated(answer: Awaitable[T]) -> T:
    """Return the answer of placement, with its errors as the scheduler's.

    Raises:
        BadRequest, Conflict: as placement returns them.
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
        if result.verdict is not ClaimVerdict.RETRY:
            raise PlacementRefused(result.reason) from error
        kind = PlacementUnavailable if is_outage(error) else PlacementFailed
        raise kind(result.reason) from error
