"""Hosts whose aggregates allow the properties of the image."""

from collections.abc import Hashable

from roost.fleet.columns import Bools
from roost.model.spec import RequestSpec
from roost.process.options import OptionStruct, option
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.looks import Looks
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER, words
from roost.scheduler.request.image_properties import says_something, with_current_names
from roost.scheduler.request.keys.key import ANY, Key
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class IsolationOptions(OptionStruct, frozen=True, group=FILTER_SCHEDULER):
    """Options: only properties that begin with namespace and separator are compared, without one all."""

    aggregate_image_properties_isolation_namespace: str | None = option(
        None, help="AggregateImagePropertiesIsolation compares only properties in this namespace."
    )
    aggregate_image_properties_isolation_separator: str = option(
        ".", help="This separates the namespace from the rest of a property's name."
    )


class AggregateImagePropertiesIsolation:
    """For each property of the image: where the host's aggregates have metadata of that name, the value is
    one of theirs. Values are separated by commas, and spelled as `roost.scheduler.request.image_properties`
    says: ``True`` for a property that says yes. No and zero are not compared. Source: Nova's filter of this
    name.
    """

    name = "AggregateImagePropertiesIsolation"
    looks_at = Looks.REPORT
    runs_on_rebuild = True
    OPTIONS = IsolationOptions

    def __init__(self, options: IsolationOptions) -> None:
        namespace = options.aggregate_image_properties_isolation_namespace
        separator = options.aggregate_image_properties_isolation_separator
        self._prefix = f"{namespace}{separator}" if namespace else ""
        self.reads = (Key("image_property", self._prefix, ANY),)

    def no_effect(self, name: str, spec: RequestSpec, table: NodeTable) -> str | None:
        return "no aggregate has metadata of this name" if table.metadata(name) is None else None

    def key(self, request: SchedulingRequest) -> Hashable | None:
        return tuple(sorted(self._properties(request).items())) or None

    def mask(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Bools | None:
        mask: Bools | None = None
        for name, wanted in self._properties(request).items():
            labels = hosts.table.metadata(name)
            if labels is None:
                continue

            def allows(values: tuple[str, ...], wanted: str = wanted) -> bool:
                return not values or wanted in words(values)

            allowed = labels.judged(allows, hosts.index) > 0
            mask = allowed if mask is None else mask & allowed
        return mask

    def _properties(self, request: SchedulingRequest) -> dict[str, str]:
        return {
            name: value
            for name, value in with_current_names(request.spec.image_properties).items()
            if says_something(name, value) and name.startswith(self._prefix)
        }


PLUGIN = AggregateImagePropertiesIsolation
