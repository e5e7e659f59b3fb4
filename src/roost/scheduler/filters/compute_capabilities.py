"""Hosts whose capabilities match the flavor's extra specs."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from roost.fleet.columns import Bools
from roost.model.spec import RequestSpec
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plain_plugins import ATTRIBUTES, reported_value
from roost.scheduler.request.extra_specs import matches
from roost.scheduler.request.keys.key import ANY, UNSCOPED, Key
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

SCOPE = "capabilities"
ADDRESS_BITS = "hw:maxphysaddr_bits"


class ComputeCapabilitiesFilter:
    """Every extra spec ``capabilities:A:B`` matches what the host reports as ``A``, in it ``B``.

    ``A`` is an attribute of `roost.scheduler.plugins.plain_plugins.HostState`, or else one of the host's
    ``stats``. A host without it is excluded. An unscoped key ``A`` counts on the hosts that have it. The
    extra spec ``hw:maxphysaddr_bits`` stands for ``capabilities:cpu_info:maxphysaddr:bits`` with operator
    ``>=``. Operators: see `roost.scheduler.request.extra_specs`. Source: Nova's filter of this name.
    """

    name = "ComputeCapabilitiesFilter"
    reads = (
        Key("extra_spec", f"{SCOPE}:", ANY),
        Key("extra_spec", ADDRESS_BITS),
        Key("extra_spec", "", UNSCOPED),
    )
    looks_at = Looks.REPORT

    def no_effect(self, name: str, spec: RequestSpec, table: NodeTable) -> str | None:
        """Return a reason for an unscoped key that no host has."""
        if ":" in name or name in ATTRIBUTES or table.stats_reported[name]:
            return None
        return "no host reports it"

    def key(self, request: SchedulingRequest) -> Hashable | None:
        """Return the extra specs that the filter reads."""
        return tuple(_wanted(request.spec.flavor.extra_specs)) or None

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        table = hosts.table
        mask: Bools | None = None
        for path, is_scoped, wanted in _wanted(request.spec.flavor.extra_specs):
            known: dict[str | None, bool] = {None: not is_scoped}

            def passes(
                index: int,
                path: tuple[str, ...] = path,
                wanted: str = wanted,
                known: dict[str | None, bool] = known,
            ) -> bool:
                found = _capability(table, index, path)
                text = None if found is None else str(found)
                if text not in known:
                    known[text] = matches(str(text), wanted)
                return known[text]

            if not is_scoped and path[0] in ATTRIBUTES:
                known[None] = False
            matched = np.fromiter(map(passes, hosts.index.tolist()), np.bool_, len(hosts))
            mask = matched if mask is None else mask & matched
        return mask


def _wanted(extra_specs: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], bool, str]]:
    """Yield path, scopedness and requirement of each extra spec for capabilities."""
    for key, wanted in extra_specs.items():
        first, *path = key.split(":")
        if key == ADDRESS_BITS:
            yield ("cpu_info", "maxphysaddr", "bits"), True, f">= {wanted}"
        elif not path and key != "group_policy":
            yield (first,), False, wanted
        elif path and first == SCOPE:
            yield tuple(path), True, wanted


def _capability(table: NodeTable, index: int, path: tuple[str, ...]) -> Any:
    """Return the value that a host reports under a path; None if there is none."""
    found = reported_value(table, index, path[0])
    if found is None:
        found = table.report(index).stats.get(path[0])
    for word in path[1:]:
        if isinstance(found, str):
            try:
                found = msgspec.json.decode(found)
            except msgspec.DecodeError:
                return None
        if not isinstance(found, Mapping):
            return None
        found = found.get(word)
    return found


PLUGIN = ComputeCapabilitiesFilter
