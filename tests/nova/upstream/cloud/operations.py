"""The calls of users and operators of a Nova cloud, as its API makes them, and the state of its instances."""

import contextlib
import uuid

from cloud import threads  # noqa: F401 - the first import of Nova
from nova.compute import api
from oslo_db.exception import DBError

from nova import config, context, exception, objects

FLAVORS = {"small": (1, 512, 10), "large": (2, 1024, 20)}


class _Cloud:
    def __init__(self) -> None:
        self.api = api.API()
        self.admin = context.RequestContext(
            user_id=uuid.uuid4().hex, project_id=uuid.uuid4().hex, is_admin=True, auth_token="admin"
        )
        self.flavors = {}


_cloud: _Cloud | None = None


def connect(config_file: str) -> None:
    """Read the configuration of an API process."""
    global _cloud
    config.parse_args(["nova-api", "--config-file", config_file])
    objects.register_all()
    _cloud = _Cloud()


def make_flavors() -> None:
    """Make the flavors `FLAVORS`: processors, MiB of memory, GiB of disk."""
    for name, (cpus, memory, disk) in FLAVORS.items():
        objects.Flavor(
            _cloud.admin,
            name=name,
            flavorid=name,
            vcpus=cpus,
            memory_mb=memory,
            root_gb=disk,
            ephemeral_gb=0,
            swap=0,
            rxtx_factor=1.0,
            is_public=True,
        ).create()


def boot(image: str, flavor: str = "small", count: int = 1, zone: str | None = None) -> list[str]:
    """Ask for servers; return their uuids."""
    made, _ = _cloud.api.create(
        _cloud.admin,
        _flavor(flavor),
        image,
        min_count=count,
        max_count=count,
        display_name="server",
        availability_zone=zone,
        scheduler_hints={},
        requested_networks=objects.NetworkRequestList(objects=[objects.NetworkRequest(network_id="none")]),
    )
    return [each.uuid for each in made]


def delete(instance: str) -> None:
    """Ask for the end of a server."""
    _cloud.api.delete(_cloud.admin, _instance(instance))


def clean_up(instance: str) -> None:
    """Delete a server that has a task with nobody left that works on it.

    A conductor that ends in the middle of a build leaves a row in a cell that the instance is not mapped to.
    """
    mapping = objects.InstanceMapping.get_by_instance_uuid(_cloud.admin, instance)
    if mapping.cell_mapping is None:
        _map(mapping)
    if mapping.cell_mapping is None:
        found = objects.BuildRequest.get_by_instance_uuid(_cloud.admin, instance).instance
    else:
        found = _instance(instance)
        found.task_state = None
        found.vm_state = "error"
        found.save()
    _cloud.api.delete(_cloud.admin, found)


def _map(mapping: "objects.InstanceMapping") -> None:
    """Map an instance to the cell that has its row, if one has."""
    for cell in objects.CellMappingList.get_all(_cloud.admin):
        with context.target_cell(_cloud.admin, cell) as targeted:
            try:
                objects.Instance.get_by_uuid(targeted, mapping.instance_uuid)
            except exception.InstanceNotFound:
                continue
        mapping.cell_mapping = cell
        mapping.save()
        with contextlib.suppress(exception.BuildRequestNotFound):
            objects.BuildRequest.get_by_instance_uuid(_cloud.admin, mapping.instance_uuid).destroy()


def resize(instance: str, flavor: str | None) -> None:
    """Ask for another flavor, or, without one, for another host by a cold migration."""
    _cloud.api.resize(_cloud.admin, _instance(instance), flavor)


def confirm(instance: str) -> None:
    """Confirm a resize."""
    _cloud.api.confirm_resize(_cloud.admin, _instance(instance))


def revert(instance: str) -> None:
    """Revert a resize."""
    _cloud.api.revert_resize(_cloud.admin, _instance(instance))


def live_migrate(instance: str) -> None:
    """Ask for another host while the guest runs."""
    _cloud.api.live_migrate(_cloud.admin, _instance(instance), False, False, None, async_=True)


def evacuate(instance: str) -> None:
    """Ask for another host, the host of the instance being down."""
    _cloud.api.evacuate(_cloud.admin, _instance(instance), None, on_shared_storage=False)


def shelve(instance: str) -> None:
    """Shelve a server."""
    _cloud.api.shelve(_cloud.admin, _instance(instance))


def unshelve(instance: str) -> None:
    """Ask for a host for a shelved server."""
    _cloud.api.unshelve(_cloud.admin, _instance(instance))


def force_down(host: str, down: bool) -> None:
    """Declare a compute dead, or alive."""
    mapping = objects.HostMapping.get_by_host(_cloud.admin, host)
    with context.target_cell(_cloud.admin, mapping.cell_mapping) as cell:
        service = objects.Service.get_by_compute_host(cell, host)
        service.forced_down = down
        service.save()


def instances() -> list[dict[str, object]]:
    """The state of each instance that is not deleted, with what its newest fault says, in all cells that
    answer."""
    found = []
    for mapping in objects.CellMappingList.get_all(_cloud.admin):
        with contextlib.suppress(DBError), context.target_cell(_cloud.admin, mapping) as cell:
            listed = objects.InstanceList.get_by_filters(
                cell, {"deleted": False}, expected_attrs=["flavor", "fault"]
            )
            found += [_shown(mapping.name, each) for each in listed]
    return found


def _shown(cell: str, instance: "objects.Instance") -> dict[str, object]:
    return {
        "uuid": instance.uuid,
        "cell": cell,
        "host": instance.host,
        "state": instance.vm_state,
        "task": instance.task_state,
        "flavor": instance.flavor.name,
        "fault": instance.fault.message if instance.fault else None,
    }


def disable(host: str, disabled: bool) -> None:
    """Keep new servers from a host, or no longer."""
    mapping = objects.HostMapping.get_by_host(_cloud.admin, host)
    with context.target_cell(_cloud.admin, mapping.cell_mapping) as cell:
        service = objects.Service.get_by_compute_host(cell, host)
        service.disabled = disabled
        service.save()


def nodes() -> dict[str, str]:
    """The host of each compute node, by the node's uuid."""
    found = {}
    for mapping in objects.CellMappingList.get_all(_cloud.admin):
        with context.target_cell(_cloud.admin, mapping) as cell:
            found |= {each.uuid: each.host for each in objects.ComputeNodeList.get_all(cell)}
    return found


def requests() -> list[str]:
    """The uuids of the instances whose build request waits."""
    return [each.instance_uuid for each in objects.BuildRequestList.get_all(_cloud.admin)]


def migrations(instance: str) -> list[dict[str, object]]:
    """The migrations of an instance, oldest first."""
    found = objects.InstanceMapping.get_by_instance_uuid(_cloud.admin, instance)
    with context.target_cell(_cloud.admin, found.cell_mapping) as cell:
        listed = objects.MigrationList.get_by_filters(cell, {"instance_uuid": instance})
        return [
            {
                "type": each.migration_type,
                "status": each.status,
                "source": each.source_compute,
                "target": each.dest_compute,
            }
            for each in sorted(listed, key=lambda each: each.id)
        ]


def _flavor(name: str) -> "objects.Flavor":
    if name not in _cloud.flavors:
        _cloud.flavors[name] = objects.Flavor.get_by_flavor_id(_cloud.admin, name)
    return _cloud.flavors[name]


def _instance(name: str) -> "objects.Instance":
    found = objects.InstanceMapping.get_by_instance_uuid(_cloud.admin, name)
    if found.cell_mapping is None:
        raise exception.InstanceNotFound(instance_id=name)
    context.set_target_cell(_cloud.admin, found.cell_mapping)
    attributes = ["flavor", "info_cache", "metadata", "system_metadata", "numa_topology"]
    return objects.Instance.get_by_uuid(_cloud.admin, name, expected_attrs=attributes)
