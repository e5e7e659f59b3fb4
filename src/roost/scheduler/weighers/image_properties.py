"""Weighs hosts by their instances whose images have the same properties as the request's."""

from collections import Counter
from collections.abc import Hashable

import numpy as np

from roost.fleet.columns import Float64
from roost.process.options import OptionStruct, option
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_options import (
    FILTER_SCHEDULER,
    check_ratios,
)
from roost.scheduler.request.image_properties import with_current_names
from roost.scheduler.request.keys.key import ANY, Key
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

SETTING = "image_props_weight_setting"


class ImagePropsOptions(OptionStruct, frozen=True, group=FILTER_SCHEDULER):
    """``image_props_weight_setting``: ratio of each property by name; empty: 1 for all properties."""

    image_props_weight_setting: dict[str, float] = option(
        {},
        help="ImagePropertiesWeigher counts the named properties, each times its ratio, as in "
        "os_distro=1.0; without any all properties count 1.",
    )

    def __post_init__(self) -> None:
        check_ratios(SETTING, self.image_props_weight_setting)


class ImagePropertiesWeigher:
    """For each property of the request's image: the number of instances on the host whose image has the same
    value, times the property's ratio. A negative multiplier spreads over hosts. With the default multiplier 0
    nothing is counted. Source: Nova's weigher of this name."""

    name = "ImagePropertiesWeigher"
    multiplier_key = "image_props_weight_multiplier"
    default_multiplier = 0.0
    looks_at = Looks.REPORT
    OPTIONS = ImagePropsOptions

    def __init__(self, options: ImagePropsOptions) -> None:
        self._ratios = options.image_props_weight_setting
        names = tuple(Key("image_property", name) for name in self._ratios)
        self.reads = names or (Key("image_property", "", ANY),)

    def key(self, request: SchedulingRequest) -> Hashable | None:
        """Return the image's properties that count."""
        if request.options.multipliers.get(self.name, self.default_multiplier) == 0.0:
            return None
        return tuple(sorted(self._counted(request))) or None

    def raw(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Float64 | None:
        if self.key(request) is None:
            return None
        wanted = self._counted(request)
        return np.array([self._number(hosts, index, wanted) for index in hosts.index.tolist()])

    def _number(self, hosts: HostView, index: int, wanted: frozenset[tuple[str, str]]) -> float:
        instances = hosts.table.report(index).instances.values()
        same = Counter(
            each
            for instance in instances
            for each in wanted & with_current_names(instance.image_properties).items()
        )
        if not self._ratios:
            return float(same.total())
        return sum(self._ratios[name] * count for (name, _), count in sorted(same.items()))

    def _counted(self, request: SchedulingRequest) -> frozenset[tuple[str, str]]:
        properties = with_current_names(request.spec.image_properties)
        return frozenset(
            (name, value) for name, value in properties.items() if not self._ratios or name in self._ratios
        )


PLUGIN = ImagePropertiesWeigher
