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
        return [_answers(judge.host_passes, states, request) for request in requests]


def numbers(name, hosts, requests, options):
    """For each request the number of each host by a weigher; a text where the weigher raised."""
    with _Configured(options), _no_database():
        weigher = {each.__name__: each for each in all_weighers()}[name]()
        states = [_state(host) for host in hosts]
        return [_answers(weigher._weigh_object, states, request) for request in requests]


def weights(names, hosts, requests, options):
    """For each request the hosts, best first, each with its weight by all these weighers; a text for a
    request that Nova refuses."""
    with _Configured(options), _no_database():
        classes = {each.__name__: each for each in all_weighers()}
        weighers = [classes[name]() for name in names]
        states = [_state(host) for host in hosts]
        handler = HostWeightHandler()
        return [_answer(_weighed, handler, weighers, states, request) for request in requests]


def image_properties():
    """The names of the image properties that are flags, those that are numbers, and earlier names."""
    kinds = {name: type(field).__name__ for name, field in objects.ImageMetaProps.fields.items()}
    return {
        "flags": sorted(name for name, kind in kinds.items() if kind == "FlexibleBooleanField"),
        "numbers": sorted(name for name, kind in kinds.items() if kind == "IntegerField"),
        "current_names": dict(objects.ImageMetaProps._legacy_property_map),
    }


def _weighed(handler, weighers, states, request):
    found = handler.get_weighed_objects(weighers, states, _spec(request, states))
    return [[each.obj.host, each.weight] for each in found]


def _answers(ask, states, request):
    """The answer for each host; one text for a request that Nova refuses."""
    try:
        spec = _spec(request, states)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return [_answer(ask, state, spec) for state in states]


def _answer(ask, *arguments):
    try:
        return ask(*arguments)
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


def _spec(request, states):
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
        instance_group=_group(request, states),
        instance_uuid=request["instance"],
    )
    if request["image"] is not None:
        properties = request["properties"]
        spec.image = objects.ImageMeta.from_dict({"id": request["image"], "properties": properties})
    if request["cell"]:
        spec.requested_destination = objects.Destination(
            cell=objects.CellMapping(uuid=request["cell"]), allow_cross_cell_move=True
        )
    return spec


def _group(request, states):
    group = request["group"]
    if group is None:
        return None
    made = objects.InstanceGroup(
        uuid=group["uuid"],
        policy=group["policy"],
        policies=[group["policy"]],
        members=group["members"],
        hosts=[state.host for state in states if set(state.instances) & set(group["members"])],
    )
    made._rules = {"max_server_per_host": str(group["max_server_per_host"])}
    return made
