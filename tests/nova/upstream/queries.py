"""The queries that Nova's scheduler asks placement: request filters and ``ResourceRequest``."""

import contextlib
from collections import namedtuple
from unittest import mock

import nova.conf
from nova.scheduler import request_filter, utils
from nova.virt import hardware

from nova import context, exception, objects

objects.register_all()
CONF = nova.conf.CONF
CONF([], project="nova", default_config_files=[], default_config_dirs=[])

_SCHEDULER = (
    "limit_tenants_to_placement_aggregate",
    "placement_aggregate_required_for_tenants",
    "query_placement_for_image_type_support",
    "enable_isolated_aggregate_filtering",
    "image_metadata_prefilter",
    "query_placement_for_routed_network_aggregates",
    "max_placement_results",
)

_Aggregates = namedtuple("_Aggregates", ("aggregates", "generation"))


def query_strings(spec, cloud, options, fallback):
    """The query string for a request spec, and that of the fallback query, or null.

    ``spec`` and ``cloud`` are those of ``tests/support/nova_requests.py``, as plain data.
    """
    for name in _SCHEDULER:
        CONF.set_override(name, options[name], "scheduler")
    wanted = _request_spec(spec)
    ctxt = context.RequestContext("user", spec["project_id"])
    with _cloud(cloud, spec):
        request_filter.process_reqspec(ctxt, wanted)
        hosts = mock.Mock()
        hosts.get_compute_nodes_by_host_or_node = lambda ctxt, host, node, cell=None: _nodes(
            cloud, host, node, cell
        )
        first = utils.resources_from_request_spec(ctxt, wanted, hosts)
        strings = [first.to_querystring(), None]
        if first.cpu_pinning_requested and fallback:
            second = utils.resources_from_request_spec(ctxt, wanted, hosts, enable_pinning_translate=False)
            strings[1] = second.to_querystring()
    return strings


def refused_by_api(spec):
    """Whether Nova's API refuses a request for its NUMA topology, before a scheduler sees it."""
    wanted = _request_spec(spec)
    try:
        hardware.numa_get_constraints(wanted.flavor, wanted.image)
    except exception.NovaException:
        return True
    return False


def _request_spec(spec):
    flavor = spec["flavor"]
    image = spec["image"] or {}
    destination = spec["requested_destination"]
    made = objects.RequestSpec(
        flavor=objects.Flavor(
            name=flavor["name"],
            vcpus=flavor["vcpus"],
            memory_mb=flavor["memory_mb"],
            root_gb=flavor["disk_gb"],
            ephemeral_gb=flavor["ephemeral_gb"],
            swap=flavor["swap_mb"],
            extra_specs=flavor["extra_specs"],
        ),
        image=objects.ImageMeta.from_dict(
            {
                "id": image.get("id") or "11111111-1111-4111-8111-111111111111",
                "name": "image",
                "disk_format": image.get("disk_format"),
                "properties": image.get("properties", {}),
            }
        ),
        is_bfv=spec["volume_backed"],
        project_id=spec["project_id"],
        availability_zone=spec["availability_zone"],
        requested_resources=[_group(group) for group in spec["requested_resources"]],
        requested_networks=objects.NetworkRequestList(
            objects=[
                objects.NetworkRequest(network_id=network["network_id"], port_id=network["port_id"])
                for network in spec["requested_networks"]
            ]
        ),
        request_level_params=objects.RequestLevelParams(
            root_required=set(spec["root_required"]),
            root_forbidden=set(spec["root_forbidden"]),
            same_subtree=[sorted(suffixes) for suffixes in spec["same_subtree"]],
        ),
        pci_requests=objects.InstancePCIRequests(
            requests=[
                objects.InstancePCIRequest(
                    count=1, spec=[], alias_name="device", request_id=suffix.rsplit("-", 1)[0]
                )
                for suffix in spec["pci_groups"]
            ]
        ),
        force_hosts=spec["force_hosts"],
        force_nodes=spec["force_nodes"],
        ignore_hosts=spec["ignore_hosts"],
        scheduler_hints={**spec["scheduler_hints"], **({"group": ["g"]} if spec["group"] else {})},
        requested_destination=None,
        numa_topology=None,
    )
    if destination is not None:
        named = {key: destination[key] for key in ("host", "node") if destination[key] is not None}
        made.requested_destination = objects.Destination(**named)
        made.requested_destination.obj_set_defaults()
        if destination["cell"] is not None:
            made.requested_destination.cell = objects.CellMapping(name=destination["cell"])
        for any_of in destination["aggregates"]:
            made.requested_destination.require_aggregates(any_of)
        if destination["forbidden_aggregates"]:
            made.requested_destination.append_forbidden_aggregates(destination["forbidden_aggregates"])
    return made


def _group(group):
    return objects.RequestGroup(
        use_same_provider=True,
        requester_id=group["suffix"],
        resources=group["resources"],
        required_traits={trait for any_of in group["required"] for trait in any_of},
        forbidden_traits=set(group["forbidden"]),
        aggregates=group["member_of"],
        forbidden_aggregates=set(group["forbidden_aggregates"]),
        in_tree=group["in_tree"],
    )


@contextlib.contextmanager
def _cloud(cloud, spec):
    """Answers of the databases, Neutron and placement."""
    ports = {network["port_id"]: network for network in spec["requested_networks"] if network["port_id"]}
    networks = {
        network["network_id"]: network for network in spec["requested_networks"] if network["network_id"]
    }

    class Neutron:
        def show_port(self, ctxt, port_id):
            port = ports[port_id]
            fixed = [{"subnet_id": port["segments"][0]}] if len(port["segments"]) == 1 else []
            networks[port_id] = port
            return {"port": {"fixed_ips": fixed, "network_id": port_id}}

        def is_remote_managed_port(self, ctxt, port_id):
            return ports[port_id]["remote_managed"]

        def get_segment_ids_for_network(self, ctxt, network_id):
            return networks[network_id]["segments"]

        def get_segment_id_for_subnet(self, ctxt, subnet_id):
            return subnet_id

    placement = mock.Mock()
    placement._get_provider_aggregates = lambda ctxt, segment: _Aggregates(
        set(cloud["segments"].get(segment, ())), 1
    )
    aggregates = objects.AggregateList
    with (
        mock.patch.object(
            aggregates,
            "get_by_metadata",
            lambda ctxt, key=None, value=None: [
                _aggregate(each)
                for each in cloud["aggregates"]
                if any(
                    (key is None or name == key) and text == value for name, text in each["metadata"].items()
                )
            ],
        ),
        mock.patch.object(
            aggregates,
            "get_non_matching_by_metadata_keys",
            lambda ctxt, ignored, prefix, value: [
                _aggregate(each)
                for each in cloud["aggregates"]
                if any(
                    name.startswith(prefix) and text == value and name not in ignored
                    for name, text in each["metadata"].items()
                )
            ],
        ),
        mock.patch.object(
            objects.service, "get_minimum_version_all_cells", lambda ctxt, binaries: cloud["service_version"]
        ),
        mock.patch.object(request_filter.neutron, "API", Neutron),
        mock.patch.object(request_filter.report, "report_client_singleton", lambda: placement),
    ):
        yield


def _aggregate(each):
    return objects.Aggregate(uuid=each["uuid"], metadata=each["metadata"])


def _nodes(cloud, host, node, cell):
    return [
        objects.ComputeNode(uuid=each["node"], host=each["host"], hypervisor_hostname=each["nodename"])
        for each in cloud["nodes"]
        if (not host or each["host"] == host)
        and (not node or each["nodename"] == node)
        and (cell is None or each["cell"] == cell.name)
    ]
