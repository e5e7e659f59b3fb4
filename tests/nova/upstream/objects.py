"""Nova's versioned objects: a RequestSpec as Nova serialises it, and a Selection as Nova reads it."""

from typing import Any

from oslo_serialization import jsonutils

from nova import objects

UUID = "155d900f-4e14-4e4c-a73d-069cbf4541e7"


def serialised() -> Any:
    """A RequestSpec that sets what a scheduler reads."""
    objects.register_all()
    spec = objects.RequestSpec(
        project_id="project",
        user_id="user",
        flavor=objects.Flavor(
            name="small",
            vcpus=1,
            memory_mb=1024,
            root_gb=10,
            ephemeral_gb=1,
            swap=512,
            extra_specs={"trait:CUSTOM_FAST": "required"},
        ),
        image=objects.ImageMeta.from_dict(
            {
                "id": UUID,
                "disk_format": "qcow2",
                "properties": {
                    "hw_disk_bus": "virtio",
                    "hw_numa_nodes": "2",
                    "hw_numa_cpus.0": "0-1",
                    "hw_numa_cpus.1": "2",
                    "hw_numa_mem.0": "512",
                    "hw_numa_mem.1": "512",
                    "hw_qemu_guest_agent": "yes",
                    "trait:CUSTOM_RED": "required",
                },
            }
        ),
        num_instances=1,
        instance_uuid=UUID,
        is_bfv=True,
        availability_zone="az1",
        ignore_hosts=["ignored"],
        force_hosts=None,
        instance_group=objects.InstanceGroup(
            uuid=UUID, policy="anti-affinity", _rules={"max_server_per_host": "2"}, hosts=["host1"]
        ),
        retry=objects.SchedulerRetries(
            num_attempts=1,
            hosts=objects.ComputeNodeList(objects=[objects.ComputeNode(host="failed")]),
        ),
        requested_destination=objects.Destination(
            host="host1",
            node="node1",
            cell=objects.CellMapping(uuid=UUID, name="cell1"),
            aggregates=["a,b", "c"],
            forbidden_aggregates={"d"},
        ),
        requested_resources=[
            objects.RequestGroup(
                use_same_provider=True,
                requester_id="port1",
                resources={"CUSTOM_GPU": 1},
                required_traits={"CUSTOM_FAST"},
                forbidden_traits={"CUSTOM_RED"},
                aggregates=[["a", "b"]],
                forbidden_aggregates={"c"},
            )
        ],
        request_level_params=objects.RequestLevelParams(
            root_required={"COMPUTE_NODE"}, root_forbidden={"CUSTOM_RED"}, same_subtree=[["port1", "_2"]]
        ),
        pci_requests=objects.InstancePCIRequests(
            requests=[
                objects.InstancePCIRequest(
                    count=2,
                    spec=[{"vendor_id": "8086"}],
                    alias_name="gpu",
                    request_id=UUID,
                    numa_policy="required",
                )
            ]
        ),
        requested_networks=objects.NetworkRequestList(
            objects=[objects.NetworkRequest(network_id="net", port_id=UUID)]
        ),
        network_metadata=objects.NetworkMetadata(physnets={"physnet1"}, tunneled=True),
        scheduler_hints={"query": ["[]"], "same_host": [UUID]},
    )
    return jsonutils.to_primitive(spec.obj_to_primitive())


def selected(selection: dict[str, Any]) -> dict[str, Any]:
    """What Nova reads of a Selection."""
    objects.register_all()
    found = objects.Selection.obj_from_primitive(selection)
    numa = found.limits.numa_topology
    return {
        "host": found.service_host,
        "node": found.compute_node_uuid,
        "nodename": found.nodename,
        "cell": found.cell_uuid,
        "zone": found.availability_zone,
        "vcpu": found.limits.vcpu,
        "cpu_ratio": None if numa is None else numa.cpu_allocation_ratio,
        "physnets": None if numa is None else sorted(numa.network_metadata.physnets),
        "allocation_request": jsonutils.loads(found.allocation_request),
        "version": found.allocation_request_version,
        "dict": found.to_dict(),
    }
