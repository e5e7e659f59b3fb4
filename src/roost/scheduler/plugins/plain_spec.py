"""The request spec as a filter or weigher in Nova's manner reads it.

Source: the fields of ``nova.objects.RequestSpec``, ``Flavor``, ``ImageMeta`` and ``InstanceGroup`` that
plugins of schedulers use.
"""

from typing import Any

import msgspec

from roost.model.spec import Flavor
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.image_properties import with_current_names
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class PlainGroup(msgspec.Struct, frozen=True):
    """The server group. ``hosts``: names of the hosts with members, those placed by this run included."""

    uuid: str
    policy: str
    hosts: list[str]
    rules: dict[str, int]

    @property
    def policies(self) -> list[str]:
        """The policy, as a list."""
        return [self.policy]


class PlainImage(msgspec.Struct, frozen=True):
    """The image. ``properties`` have current names and spellings: see
    `roost.scheduler.request.image_properties`."""

    id: str | None
    disk_format: str | None
    properties: dict[str, str]


class PlainFlavor:
    """The flavor, with Nova's names for its disks: ``root_gb`` in GiB, ``swap`` in MiB."""

    def __init__(self, flavor: Flavor) -> None:
        self._flavor = flavor
        self.root_gb = flavor.disk_gb
        self.swap = flavor.swap_mb

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flavor, name)


class PlainSpec:
    """The request spec: the attributes of `roost.model.spec.RequestSpec`, and further ones of Nova's.

    ``instance_uuid`` is the first instance of the request.
    """

    def __init__(self, request: SchedulingRequest, table: NodeTable, progress: GroupPlacement) -> None:
        spec = request.spec
        self._spec = spec
        self.num_instances = len(request.instances)
        self.instance_uuid = request.instances[0] if request.instances else None
        self.flavor = PlainFlavor(spec.flavor)
        self.vcpus = spec.flavor.vcpus
        self.memory_mb = spec.flavor.memory_mb
        self.root_gb = spec.flavor.disk_gb
        self.ephemeral_gb = spec.flavor.ephemeral_gb
        self.swap = spec.flavor.swap_mb
        self.is_bfv = spec.volume_backed
        image = spec.image
        self.image = image and PlainImage(image.id, image.disk_format, with_current_names(image.properties))
        group = spec.group
        self.instance_group = group and PlainGroup(
            group.uuid,
            group.policy,
            sorted(table.hosts[index] for index in progress.members if index >= 0),
            {"max_server_per_host": group.max_server_per_host},
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spec, name)

    def get_scheduler_hint(self, name: str, default: Any = None) -> Any:
        """Return the value of a hint, a list if it has several; ``default`` if it is missing."""
        values = self._spec.scheduler_hints.get(name, ())
        return (values[0] if len(values) == 1 else list(values)) if values else default
