"""What Nova's scheduler sends as notifications of a call."""

import datetime

from nova.notifications.objects.request_spec import RequestSpecPayload

from nova import conf, objects, rpc

UUID = "155d900f-4e14-4e4c-a73d-069cbf4541e7"
SINCE = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def payloads(rich):
    """A RequestSpec as it is sent, and the unversioned and the versioned payload of it."""
    objects.register_all()
    conf.CONF([], project="nova", default_config_files=[])
    conf.CONF.set_override("notification_format", "both", group="notifications")
    rpc.init(conf.CONF)
    spec = _rich() if rich else _poor()
    sent = spec.obj_to_primitive()
    read = objects.RequestSpec.obj_from_primitive(sent)
    legacy = rpc.JsonPayloadSerializer().serialize_entity(
        None, {"request_spec": read.to_legacy_request_spec_dict()}
    )
    payload = RequestSpecPayload(request_spec=read)
    payload.obj_reset_changes(recursive=True)
    return [sent, legacy, payload.obj_to_primitive()]


def _flavor():
    return objects.Flavor(
        id=7,
        name="small",
        flavorid="1",
        vcpus=1,
        memory_mb=1024,
        root_gb=10,
        ephemeral_gb=1,
        swap=512,
        rxtx_factor=1.0,
        vcpu_weight=0,
        disabled=False,
        is_public=True,
        created_at=SINCE,
        updated_at=None,
        extra_specs={"trait:CUSTOM_FAST": "required"},
    )


def _poor():
    return objects.RequestSpec(
        project_id="project",
        user_id="user",
        availability_zone=None,
        flavor=_flavor(),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        numa_topology=None,
        pci_requests=None,
        num_instances=2,
        instance_uuid=UUID,
        ignore_hosts=None,
        scheduler_hints={},
        security_groups=objects.SecurityGroupList(objects=[]),
    )


def _rich():
    spec = _poor()
    spec.image = objects.ImageMeta(
        id=UUID,
        name="image",
        size=1,
        min_ram=0,
        created_at=SINCE,
        properties=objects.ImageMetaProps(
            hw_disk_bus="virtio",
            hw_numa_nodes=2,
            hw_numa_cpus=[{0, 1}, {2}],
            traits_required=["CUSTOM_RED"],
            hw_ephemeral_encryption_secret_uuid=UUID,
        ),
    )
    spec.availability_zone = "az1"
    spec.ignore_hosts = ["ignored"]
    spec.force_hosts = ["forced"]
    spec.force_nodes = ["forced-node"]
    spec.security_groups = objects.SecurityGroupList(
        objects=[objects.SecurityGroup(uuid=UUID), objects.SecurityGroup(name="default")]
    )
    spec.instance_group = objects.InstanceGroup(
        id=1,
        uuid=UUID,
        name="group",
        user_id="user",
        project_id="project",
        policy="anti-affinity",
        _rules={"max_server_per_host": "2"},
        members=[UUID],
        hosts=["host1"],
    )
    spec.retry = objects.SchedulerRetries(
        num_attempts=1,
        hosts=objects.ComputeNodeList(objects=[objects.ComputeNode(host="h", hypervisor_hostname="node")]),
    )
    spec.requested_destination = objects.Destination(
        host="host1",
        cell=objects.CellMapping(
            uuid=UUID, name="cell1", disabled=False, transport_url="secret", database_connection="secret"
        ),
        aggregates=["a,b", "c"],
    )
    spec.pci_requests = objects.InstancePCIRequests(
        requests=[
            objects.InstancePCIRequest(
                count=2,
                spec=[{"vendor_id": "8086"}],
                alias_name="gpu",
                request_id=UUID,
                numa_policy="required",
            )
        ]
    )
    spec.numa_topology = objects.InstanceNUMATopology(
        cells=[
            objects.InstanceNUMACell(
                id=0,
                cpuset={0, 1},
                pcpuset={2},
                memory=512,
                pagesize=4,
                cpu_policy="mixed",
                cpu_topology=objects.VirtCPUTopology(sockets=1, cores=2, threads=1),
            )
        ],
        emulator_threads_policy=None,
    )
    spec.scheduler_hints = {"same_host": [UUID]}
    return spec
