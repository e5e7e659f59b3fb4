"""Isolated images go to isolated hosts, and other images elsewhere."""

from collections.abc import Collection, Hashable

from roost.process.options import OptionStruct, option
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER
from roost.scheduler.plugins.plugins import Named
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class IsolatedHostsOptions(OptionStruct, frozen=True, group=FILTER_SCHEDULER):
    """``isolated_hosts``: names of compute services. ``isolated_images``: ids of images."""

    isolated_hosts: frozenset[str] = option(
        frozenset(), help="IsolatedHostsFilter keeps these hosts for the isolated images."
    )
    isolated_images: frozenset[str] = option(
        frozenset(), help="IsolatedHostsFilter restricts these images, by id, to the isolated hosts."
    )
    restrict_isolated_hosts_to_isolated_images: bool = option(
        True, help="Other images may not use isolated hosts."
    )


class IsolatedHostsFilter:
    """An isolated image may use isolated hosts only. Any other image may use the other hosts, and isolated
    hosts as well if ``restrict_isolated_hosts_to_isolated_images`` is false.

    Source: Nova's filter of this name.
    """

    name = "IsolatedHostsFilter"
    runs_on_rebuild = True
    OPTIONS = IsolatedHostsOptions

    def __init__(self, options: IsolatedHostsOptions) -> None:
        self._options = options

    def key(self, request: SchedulingRequest) -> Hashable | None:
        """Return whether the image is isolated; None if all hosts may be used."""
        isolated = self._is_isolated(request)
        if isolated or self._options.restrict_isolated_hosts_to_isolated_images:
            return isolated
        return None

    def named(self, hosts: HostView, request: SchedulingRequest, progress: GroupPlacement) -> Named | None:
        isolated: Collection[int] = [
            index for host in self._options.isolated_hosts for index in hosts.table.indexes_of_host(host)
        ]
        if self._is_isolated(request):
            return Named(isolated, allowed=True)
        if self._options.restrict_isolated_hosts_to_isolated_images:
            return Named(isolated, allowed=False)
        return None

    def _is_isolated(self, request: SchedulingRequest) -> bool:
        image = request.spec.image
        return image is not None and image.id in self._options.isolated_images


PLUGIN = IsolatedHostsFilter
