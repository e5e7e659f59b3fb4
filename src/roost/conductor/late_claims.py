"""The release of claims that are made for an instance after its end.

A conductor asks the scheduler for a claim, and is paused or killed before it has the answer. Another one
takes its request over and finishes it: the instance cannot be placed, all its builds fail, or its user
deletes it. Then the claim is made, and the conductor that asked for it may be dead. So an instance for which
an earlier owner of its request may still claim is noted when its request is finished and when it is
forgotten, and its claims are read for a while. A claim that it holds after its end is freed.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping

from roost.conductor.claim_release import free_claims
from roost.conductor.context import PlacementContext
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.late_claims import count_look, noted_instances_after
from roost.state.api_database.tables import API
from roost.state.cell_database.conductor_work import find_in_error
from roost.state.leases import Tenure, leases_of_kind
from roost.storage import StorageError

LOOK_SECONDS = 20.0
"""Seconds between two looks."""


async def free_late_claims(context: PlacementContext, tenure: Tenure) -> None:
    """Read the claims of the noted instances once, and free those of instances that have ended.

    Of several conductors only one does so: the holder of the first lease. It does no harm if two do. A look
    that a cell did not answer does not count. Raises `StorageError`, and what placement raises.
    """
    leases = await context.read(API, leases_of_kind(tenure.kind))
    first = next((lease for lease in leases if not lease.vacant), None)
    if first is None or first.holder != tenure.holder:
        return
    after, silent = "", False
    while noted := await context.read(API, noted_instances_after(after)):
        ended = [uuid for uuid, cell in noted.items() if cell is None]
        for cell, uuids in _by_cell(noted).items():
            try:
                ended += await context.read(f"cell/{cell}", find_in_error(tuple(uuids)))
            except StorageError as error:
                silent = True
                values = {"cell": cell, "error": one_line(error)}
                context.log("a cell cannot be asked of late claims", values, "debug")
        await _free(context, ended)
        after = [*noted][-1]
    if not silent:
        await context.write(API, count_look())


def _by_cell(noted: Mapping[str, str | None]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for uuid, cell in noted.items():
        if cell is not None:
            found[cell].append(uuid)
    return found


async def _free(context: PlacementContext, ended: Collection[str]) -> None:
    outcome = await free_claims(context, ended)
    for uuid, error in outcome.refused.items():
        values = {"instance": uuid, "error": one_line(error)}
        context.log("a claim cannot be freed", values, "warning")
    for uuid in outcome.freed:
        values = {"instance": uuid}
        context.log("a claim that came after the end of its instance is freed", values, "warning")
