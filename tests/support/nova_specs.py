"""Nova's RequestSpec as oslo.versionedobjects serialises it, made by hand."""

from typing import Any

UUID = "155d900f-4e14-4e4c-a73d-069cbf4541e7"
PORT = "155d900f-4e14-4e4c-a73d-069cbf4541e8"


def made(kind: str, version: str, /, **fields: Any) -> dict[str, Any]:
    """An object of Nova."""
    return {
        "nova_object.name": kind,
        "nova_object.namespace": "nova",
        "nova_object.version": version,
        "nova_object.data": fields,
        "nova_object.changes": sorted(fields),
    }


def flavor(**more: Any) -> dict[str, Any]:
    """A small flavor."""
    small = {"name": "small", "vcpus": 1, "memory_mb": 1024, "root_gb": 10, "ephemeral_gb": 0, "swap": 0}
    return made("Flavor", "1.2", **{**small, "extra_specs": {}, **more})


def request_spec(version: str = "1.15", **more: Any) -> dict[str, Any]:
    """A request for one small instance."""
    least = {
        "project_id": "project",
        "user_id": "user",
        "flavor": flavor(),
        "num_instances": 1,
        "instance_uuid": UUID,
        "image": None,
        "scheduler_hints": {},
    }
    return made("RequestSpec", version, **{**least, **more})


def rich_request_spec() -> dict[str, Any]:
    """A request that sets all that a scheduler reads."""
    return request_spec(
        flavor=flavor(swap=512, ephemeral_gb=1, extra_specs={"trait:CUSTOM_FAST": "required"}),
        image=made(
            "ImageMeta",
            "1.8",
            id=UUID,
            disk_format="qcow2",
            properties=made(
                "ImageMetaProps",
                "1.44",
                hw_disk_bus="virtio",
                hw_numa_nodes=2,
                hw_numa_cpus=[[0, 1], [2]],
                hw_numa_mem=[512, 512],
                hw_qemu_guest_agent=True,
                hw_vif_model=None,
                traits_required=["CUSTOM_RED"],
            ),
        ),
        is_bfv=True,
        availability_zone="az1",
        ignore_hosts=["ignored"],
        force_hosts=None,
        instance_group=made(
            "InstanceGroup",
            "1.11",
            uuid=UUID,
            policy="anti-affinity",
            _rules={"max_server_per_host": "2"},
            hosts=["host1"],
        ),
        retry=made(
            "SchedulerRetries",
            "1.1",
            num_attempts=1,
            hosts=made("ComputeNodeList", "1.17", objects=[made("ComputeNode", "1.19", host="failed")]),
        ),
        requested_destination=made(
            "Destination",
            "1.4",
            host="host1",
            node="node1",
            cell=made("CellMapping", "1.1", uuid=UUID, name="cell1"),
            aggregates=["a,b", "c"],
            forbidden_aggregates=["d"],
            allow_cross_cell_move=False,
        ),
        requested_resources=[
            made(
                "RequestGroup",
                "1.3",
                use_same_provider=True,
                requester_id="port1",
                resources={"CUSTOM_GPU": 1},
                required_traits=["CUSTOM_FAST"],
                forbidden_traits=["CUSTOM_RED"],
                aggregates=[["a", "b"]],
                forbidden_aggregates=["c"],
                in_tree=None,
            )
        ],
        request_level_params=made(
            "RequestLevelParams",
            "1.1",
            root_required=["COMPUTE_NODE"],
            root_forbidden=["CUSTOM_RED"],
            same_subtree=[["port1", "_2"]],
        ),
        pci_requests=made(
            "InstancePCIRequests",
            "1.1",
            requests=[
                made(
                    "InstancePCIRequest",
                    "1.4",
                    count=2,
                    spec=[{"vendor_id": "8086"}],
                    alias_name="gpu",
                    request_id="r1",
                    numa_policy="required",
                )
            ],
        ),
        requested_networks=made(
            "NetworkRequestList",
            "1.1",
            objects=[made("NetworkRequest", "1.3", network_id="net", port_id=PORT)],
        ),
        network_metadata=made("NetworkMetadata", "1.0", physnets=["physnet1"], tunneled=True),
        scheduler_hints={"query": ["[]"], "same_host": [UUID]},
    )
