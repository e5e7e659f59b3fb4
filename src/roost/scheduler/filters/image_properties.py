"""Hosts that run what the image needs."""

import operator
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from roost.fleet.columns import Bools
from roost.model.node import SupportedInstance
from roost.process.options import OptionStruct, option
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER
from roost.scheduler.request.image_properties import spelled, with_current_names
from roost.scheduler.request.keys.key import Key
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

_COMPARISONS: Final[dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}
_PART = re.compile(r"\s*(<=|>=|<|>|!=|==)\s*(\d+(?:\.\d+)*)\s*")

Requirement = tuple[tuple[str, tuple[int, ...]], ...]
"""Comparisons that a version must satisfy, all of them."""


def requirement_of(text: str) -> Requirement:
    """Return a requirement such as ``>=8.0, <9`` as comparisons.

    Raises:
        ValueError: it is none.
    """
    parts = [_PART.fullmatch(part) for part in text.split(",")]
    if not all(parts):
        raise ValueError(f"{text!r} is no requirement of a version, such as '>=8.0, <9'")
    return tuple((part[1], _normal(list(map(int, part[2].split("."))))) for part in parts if part is not None)


def satisfies(version: int, requirement: Requirement) -> bool:
    """Return whether a version, three decimal digits a part, satisfies a requirement."""
    parts: list[int] = []
    while version:
        version, part = divmod(version, 1000)
        parts.insert(0, part)
    ours = _normal(parts)
    return all(_COMPARISONS[comparison](ours, theirs) for comparison, theirs in requirement)


def _normal(parts: Sequence[int]) -> tuple[int, ...]:
    """Return a version without zeros at the end: 8.0 is 8."""
    end = len(parts)
    while end > 1 and parts[end - 1] == 0:
        end -= 1
    return tuple(parts[:end])


class ImagePropertiesOptions(OptionStruct, frozen=True, group=FILTER_SCHEDULER):
    """``image_properties_default_architecture``: of images that name none; None: they run on any host."""

    image_properties_default_architecture: str | None = option(
        None, help="ImagePropertiesFilter takes this for the architecture of images that do not name one."
    )


class ImagePropertiesFilter:
    """The host supports the architecture (``hw_architecture``), the hypervisor type (``img_hv_type``) and the
    VM mode (``hw_vm_mode``) of the image, all in one of its ``supported_instances``.

    If the image has one of these, the host's hypervisor also has a version that ``img_hv_requested_version``
    allows, and processors with at least ``hw_maxphysaddr_bits`` address bits; a host that does not report its
    version or bits passes. Source: Nova's filter of this name.
    """

    name = "ImagePropertiesFilter"
    reads = tuple(
        Key("image_property", name)
        for name in (
            "hw_architecture",
            "img_hv_type",
            "hw_vm_mode",
            "img_hv_requested_version",
            "hw_maxphysaddr_bits",
        )
    )
    looks_at = Looks.REPORT
    runs_on_rebuild = True
    OPTIONS = ImagePropertiesOptions

    def __init__(self, options: ImagePropertiesOptions) -> None:
        default = options.image_properties_default_architecture
        self._architecture = "" if default is None else spelled("hw_architecture", default)

    def key(self, request: SchedulingRequest) -> Hashable | None:
        """Return architecture, hypervisor type, VM mode, versions and address bits; None without the first
        three."""
        properties = with_current_names(request.spec.image_properties)
        needs = self._needs(properties)
        return (needs, *_limits(properties)) if needs else None

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        properties = with_current_names(request.spec.image_properties)
        needs = self._needs(properties)
        if not needs:
            return None
        versions, bits = _limits(properties)

        def supports(supported: tuple[SupportedInstance, ...]) -> bool:
            return any(needs <= {each.arch, each.hv_type, each.vm_mode} for each in supported)

        table = hosts.table
        mask: Bools = table.supported_instances.judged(supports, hosts.index) > 0
        if versions:
            reported, at = np.unique(table.hypervisor_version[hosts.index], return_inverse=True)
            allowed = [not version or satisfies(version, versions) for version in reported.tolist()]
            mask &= np.array(allowed, dtype=np.bool_)[at]
        if bits:
            mask &= np.fromiter(
                (_has_bits(table, index, bits) for index in hosts.index.tolist()), np.bool_, len(hosts)
            )
        return mask

    def _needs(self, properties: Mapping[str, str]) -> frozenset[str]:
        words = (
            properties.get("hw_architecture") or self._architecture,
            properties.get("img_hv_type"),
            properties.get("hw_vm_mode"),
        )
        return frozenset(word for word in words if word)


def _limits(properties: Mapping[str, str]) -> tuple[Requirement, int]:
    """Return the allowed versions, empty for all, and the least number of address bits.

    Raises:
        BadRequestSpec: a property has an invalid value.
    """
    versions: Requirement = ()
    if requested := properties.get("img_hv_requested_version"):
        versions = _read(requirement_of, "img_hv_requested_version", requested)
    return versions, _read(int, "hw_maxphysaddr_bits", properties.get("hw_maxphysaddr_bits") or "0")


def _read(read: Callable[[str], Any], name: str, value: str) -> Any:
    try:
        return read(value)
    except ValueError as error:
        raise BadRequestSpec(f"image property {name}: {value!r} is invalid") from error


def _has_bits(table: NodeTable, index: int, bits: int) -> bool:
    of_processor = table.report(index).cpu_info.get("maxphysaddr")
    reported = of_processor.get("bits") if isinstance(of_processor, Mapping) else None
    return not isinstance(reported, int) or reported >= bits


PLUGIN = ImagePropertiesFilter
