"""Prefers hosts of the instance's cell for moves that may leave it."""

from collections.abc import Hashable

import numpy as np

from roost.fleet.columns import Float64
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.cells import requested_cell
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class CrossCellWeigher:
    """1 in the cell of the requested destination, -1 elsewhere, if the destination allows other cells.
    Source: Nova's weigher of this name."""

    name = "CrossCellWeigher"
    multiplier_key = "cross_cell_move_weight_multiplier"
    default_multiplier = 1_000_000.0
    looks_at = Looks.REPORT

    def key(self, request: SchedulingRequest) -> Hashable | None:
        """Return the preferred cell."""
        destination = request.spec.requested_destination
        if destination is None or not destination.allow_cross_cell_move:
            return None
        cell = destination.cell_uuid, destination.cell
        return cell if any(cell) else None

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        destination = request.spec.requested_destination
        if destination is None or self.key(request) is None:
            return None
        cell = requested_cell(destination, hosts.table.cells)
        return np.where(hosts.table.cell[hosts.index] == cell, 1.0, -1.0)


PLUGIN = CrossCellWeigher
