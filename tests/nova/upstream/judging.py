"""Nova's filters and weighers on hosts and requests that are plain data.

A host has the fields of Roost's NodeReport and of its tree; a request those of its RequestSpec.
"""

import datetime
from types import SimpleNamespace
from unittest import mock

import nova.conf
from nova.scheduler import host_manager
from nova.scheduler.filters import all_filters
from nova.scheduler.weights import HostWeightHandler, all_weighers
from oslo_utils import timeutils

from nova import objects

objects.register_all()
CONF = nova.conf.CONF
CONF([], default_config_files=[])


def verdicts(name, hosts, requests, options):
    """For each request whether each host passes a filter; a text where the filter raised."""
    with _Configured(options):
        judge = {each.__name__: each for each in all_filters()}[name]()
        states = [_state(host) for host in hosts]
        return [
            [_answer(judge.host_passes, state, _spec(request)) for state in states] for request in requests
        ]


def numbers(name, hosts, requests, options):
    """For each request the number of each host by a weigher; a text where the weigher raised."""
    with _Configured(options), _no_database():
        weigher = {each.__name__: each for each in all_weighers()}[name]()
        states = [_state(host) for host in hosts]
        return [
            [_answer(weigher._weigh_object, state, _spec(request)) for state in states]
            for request in requests
        ]


def weights(names, hosts, requests, options):
    """For each request the hosts, best first, each with its weight by all these weighers."""
    with _Configured(options), _no_database():
        classes = {each.__name__: each for each in all_weighers()}
        weighers = [classes[name]() for name in names]
        states = [_state(host) for host in hosts]
        handler = HostWeightHandler()
        return [
            [
                [each.obj.host, each.weight]
                for each in handler.get_weighed_objects(weighers, states, _spec(request))
            ]
            for request in requests
        ]


def _answer(ask, state, spec):
    try:
        return ask(state, spec)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class _Configured:
    def __init__(self, options):
        self._options = [(group, name, value) for group, of in options.items() for name, value in of.items()]

    def __enter__(self):
        for group, name, value in self._options:
            CONF.set_override(name, value, group=None if group == "DEFAULT" else group)

    def __exit__(self, *error):
        for group, name, _ in self._options:
            CONF.clear_override(name, group=None if group == "DEFAULT" else group)


def _no_database():
    """Instances have their metadata already."""
    module = "nova.scheduler.weights.image_props"
    mapping = mock.patch(f"{module}.objects.CellMapping.get_by_uuid")
    target = mock.patch(f"{module}.nova_context.target_cell")
    fill = mock.patch.object(objects.InstanceList, "fill_metadata")
    return _All(mapping, target, fill)


class _All:
    def __init__(self, *patches):
        self._patches = patches

    def __enter__(self):
        for each in self._patches:
            each.start()

    def __exit__(self, *error):
        for each in self._patches:
            each.stop()


def _state(host):
    state = host_manager.HostState(host["host"], host["nodename"] or host["host"], host["cell"])
    state.uuid = host["node"]
    seen = timeutils.utcnow() - datetime.timedelta(seconds=host["silent"])
    state.service = {
        "disabled": not host["enabled"],
        "last_seen_up": seen,
        "host": host["host"],
        "binary": "nova-compute",
        "topic": "compute",
        "forced_down": False,
        "updated_at": seen,
        "created_at": seen,
    }
    for name in (
        "free_ram_mb",
        "free_disk_mb",
        "num_instances",
        "num_io_ops",
        "failed_builds",
        "host_ip",
        "hypervisor_type",
        "hypervisor_version",
        "vcpus_total",
        "vcpus_used",
        "total_usable_ram_mb",
        "cpu_allocation_ratio",
        "stats",
    ):
        setattr(state, name, host[name])
    state.hypervisor_hostname = host["nodename"] or host["host"]
    state.cpu_info = host["cpu_info"]
    state.supported_instances = host["supported_instances"]
    state.metrics = [SimpleNamespace(name=name, value=value) for name, value in host["metrics"].items()]
    state.aggregates = [
        objects.Aggregate(uuid=each["uuid"], name=each["name"], metadata=each["metadata"])
        for each in host["aggregates"]
    ]
    state.instances = {
        uuid: objects.Instance(
            uuid=uuid,
            image_ref="i",
            system_metadata={f"image_{name}": value for name, value in properties.items()},
        )
        for uuid, properties in host["instances"].items()
    }
    state.pci_stats = mock.Mock(pools=host["pci_device_pools"])
    return state


def _spec(request):
    spec = objects.RequestSpec(
        project_id=request["project_id"],
        flavor=objects.Flavor(
            name=request["flavor"],
            vcpus=1,
            memory_mb=1,
            root_gb=1,
            ephemeral_gb=0,
            swap=0,
            extra_specs=request["extra_specs"],
        ),
        image=None,
        scheduler_hints={name: list(values) for name, values in request["hints"].items()},
        instance_group=None,
    )
    if request["image"] is not None:
        properties = request["properties"]
        spec.image = objects.ImageMeta.from_dict({"id": request["image"], "properties": properties})
    if request["cell"]:
        spec.requested_destination = objects.Destination(
            cell=objects.CellMapping(uuid=request["cell"]), allow_cross_cell_move=True
        )
    return spec
