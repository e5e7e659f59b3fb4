"""Hosts in Nova's databases, and the hosts that Nova's host manager finds there for requests, best first.

A host and a request are plain data: see tests/support/nova_worlds.py.
"""

import datetime
import json
from types import SimpleNamespace

import judging
import nova.conf
import oslo_messaging
import sqlalchemy
from nova.db.api import api as api_database
from nova.db.api import models as api_models
from nova.db.main import api as main_database
from nova.db.main import models
from nova.scheduler import host_manager
from nova.scheduler.filters import all_filters
from nova.scheduler.weights import all_weighers
from oslo_utils import timeutils

from nova import config, context, objects, rpc

CONF = nova.conf.CONF
CLEARED = {
    "api": ("aggregate_hosts", "aggregate_metadata", "aggregates", "host_mappings"),
    "cell": ("compute_nodes", "services", "instance_system_metadata", "instances"),
}
_METADATA = {"api": api_models.BASE.metadata, "cell": models.BASE.metadata}
_OPENED = {}


def create(folder, cells):
    """Make databases of SQLite in a folder, with a mapping of each cell by its uuid. Returns their URLs."""
    urls = {name: f"sqlite:///{folder}/{name}.db" for name in ("api", *cells)}
    CONF.set_override("connection", urls["api"], group="api_database")
    CONF.set_override("connection", urls[cells[0]], group="database")
    api_database.configure(CONF)
    main_database.configure(CONF)
    for name, url in urls.items():
        _OPENED[name] = engine = sqlalchemy.create_engine(url)
        _METADATA["api" if name == "api" else "cell"].create_all(engine)
    if config.profiler:
        config.profiler.set_defaults(CONF)  # as Nova does at its start
    oslo_messaging.get_rpc_transport(CONF, url="fake:/")  # registers the option
    CONF.set_override("transport_url", "fake:/")
    rpc.init(CONF)  # a new aggregate is notified
    for cell in cells:
        made = {"uuid": cell, "name": cell, "database_connection": urls[cell], "transport_url": "fake:/"}
        objects.CellMapping(context.get_admin_context(), **made).create()
    return urls


def fill(hosts):
    """Replace all hosts."""
    for name, engine in _OPENED.items():
        kind = "api" if name == "api" else "cell"
        with engine.begin() as connection:
            for table in CLEARED[kind]:
                connection.execute(_METADATA[kind].tables[table].delete())
    admin = context.get_admin_context()
    cells = {each.uuid: each for each in objects.CellMappingList.get_all(admin)}
    for host in hosts:
        objects.HostMapping(admin, host=host["host"], cell_mapping=cells[host["cell"]]).create()
        for each in host["aggregates"]:
            made = {
                "uuid": each["uuid"],
                "name": f"{each['uuid']} {each['name']}",
                "metadata": each["metadata"],
            }
            aggregate = objects.Aggregate(admin, **made)
            aggregate.create()
            aggregate.add_host(host["host"])
        with context.target_cell(admin, cells[host["cell"]]) as targeted:
            _node(targeted, host).create()
        with _OPENED[host["cell"]].begin() as connection:
            _service(connection, host)
            _instances(connection, host)


def _node(targeted, host):
    now = timeutils.utcnow(with_timezone=True)
    metrics = [
        {"name": name, "value": value, "timestamp": now.isoformat(), "source": "test"}
        for name, value in host["metrics"].items()
    ]
    counted = {
        "num_instances": host["num_instances"],
        "io_workload": host["num_io_ops"],
        "failed_builds": host["failed_builds"],
    }
    pools = [
        objects.PciDevicePool(vendor_id="1", product_id=str(number), numa_node=None, tags={}, **pool)
        for number, pool in enumerate(host["pci_device_pools"])
    ]
    return objects.ComputeNode(
        targeted,
        uuid=host["node"],
        host=host["host"],
        hypervisor_hostname=host["nodename"] or host["host"],
        vcpus=host["vcpus_total"],
        vcpus_used=host["vcpus_used"],
        memory_mb=host["total_usable_ram_mb"],
        memory_mb_used=host["total_usable_ram_mb"] - host["free_ram_mb"],
        free_ram_mb=host["free_ram_mb"],
        local_gb=1000,
        local_gb_used=0,
        free_disk_gb=host["free_disk_mb"] // 1024,
        hypervisor_type=host["hypervisor_type"] or "",
        hypervisor_version=host["hypervisor_version"] or 0,
        cpu_info=json.dumps(host["cpu_info"]),
        host_ip=host["host_ip"],
        stats={**host["stats"], **{name: str(number) for name, number in counted.items()}},
        supported_hv_specs=[objects.HVSpec.from_list(each) for each in host["supported_instances"]],
        metrics=json.dumps(metrics),
        pci_device_pools=objects.PciDevicePoolList(objects=pools),
        cpu_allocation_ratio=host["cpu_allocation_ratio"],
        ram_allocation_ratio=1.0,
        disk_allocation_ratio=1.0,
    )


def _service(connection, host):
    seen = timeutils.utcnow() - datetime.timedelta(seconds=host["silent"])
    row = {
        "uuid": host["node"],
        "host": host["host"],
        "binary": "nova-compute",
        "topic": "compute",
        "report_count": 1,
        "disabled": not host["enabled"],
        "forced_down": False,
        "last_seen_up": seen,
        "created_at": seen,
        "version": objects.service.SERVICE_VERSION,
        "deleted": 0,
    }
    connection.execute(models.Service.__table__.insert(), row)


def _instances(connection, host):
    for uuid, properties in host["instances"].items():
        node = host["nodename"] or host["host"]
        row = {"uuid": uuid, "host": host["host"], "node": node, "project_id": "p", "deleted": 0}
        connection.execute(models.Instance.__table__.insert(), {**row, "vm_state": "active"})
        for name, value in {"base_image_ref": "i", **properties}.items():
            said = {"instance_uuid": uuid, "key": f"image_{name}", "value": value, "deleted": 0}
            connection.execute(models.InstanceSystemMetadata.__table__.insert(), said)


def scheduled(hosts, requests, filters, weighers, options):
    """For each request the request spec as it goes over the wire, and each host that passes with its weight,
    best first; a text in their place where Nova refuses the request."""
    with judging._Configured(options):
        manager = host_manager.HostManager()
        named = {each.__name__: each for each in all_filters()}
        manager.enabled_filters = [named[name]() for name in filters]
        named = {each.__name__: each for each in all_weighers()}
        manager.weighers = [named[name]() for name in weighers]
        there = [SimpleNamespace(host=each["host"], instances=each["instances"]) for each in hosts]
        nodes = [each["node"] for each in hosts]
        return [judging._answer(_scheduled, manager, nodes, request, there) for request in requests]


def _scheduled(manager, nodes, request, there):
    spec = judging._spec(request, there)
    spec.user_id = "user"
    spec.num_instances = 1
    for name in ("ignore_hosts", "force_hosts", "force_nodes", "retry", "requested_destination"):
        if not spec.obj_attr_is_set(name):
            setattr(spec, name, None)
    wire = spec.obj_to_primitive()
    asked = context.get_admin_context()
    states = list(manager.get_host_states_by_uuids(asked, nodes, spec))
    if len(states) != len(nodes):
        raise AssertionError(f"{len(states)} host states of {len(nodes)}")
    passing = list(manager.get_filtered_hosts(states, spec))
    found = manager.get_weighed_hosts(passing, spec) if passing else []
    return {"spec": wire, "hosts": [[each.obj.host, each.weight] for each in found]}
