"""Nova's PCI pools and aliases: ``PciDeviceStats``, and the requests of flavors."""

import json

import nova.conf
from nova.pci import request as pci_request
from nova.pci import stats

from nova import exception, objects

objects.register_all()
CONF = nova.conf.CONF
CONF([], project="nova", default_config_files=[], default_config_dirs=[])


def left_after(cases):
    """For each case the pools that are left when its requests are applied; null if they are not supported.

    A case has ``pools``, ``requests``, ``mappings`` or null, ``cells`` (ids of host cells) or null, and
    ``sockets``: pairs of a host cell and its socket.
    """
    return [_left_after(**case) for case in cases]


def _left_after(pools, requests, mappings, cells, sockets):
    topology = objects.NUMATopology(
        cells=[objects.NUMACell(id=cell, socket=socket) for cell, socket in sockets]
    )
    reported = objects.PciDevicePoolList(objects=[objects.PciDevicePool.from_dict(pool) for pool in pools])
    host = stats.PciDeviceStats(topology, stats=reported)
    wanted = [objects.InstancePCIRequest(**_with_names(request)) for request in requests]
    guest = None if cells is None else [objects.InstanceNUMACell(id=cell) for cell in cells]
    supported = host.support_requests(wanted, mappings, guest)
    try:
        host.apply_requests(wanted, mappings, guest)
    except exception.PciDeviceRequestFailed:
        assert not supported
        return None
    assert supported
    return [pool for pool in host.pools if pool["count"]]


def _with_names(request):
    return {
        "request_id": request["id"],
        "count": request.get("count", 1),
        "spec": request["specs"],
        "alias_name": request.get("alias"),
        "numa_policy": request.get("numa_policy"),
    }


def of_flavor(aliases, text, policy, in_placement):
    """The requests of a flavor, and the request groups of these."""
    CONF.set_override("alias", [json.dumps(alias) for alias in aliases], "pci")
    CONF.set_override("pci_in_placement", in_placement, "filter_scheduler")
    pci_request.get_alias_from_config.cache_clear()
    flavor = objects.Flavor(extra_specs={"pci_passthrough:alias": text})
    found = pci_request.get_pci_requests_from_flavor(flavor, policy)
    spec = objects.RequestSpec(pci_requests=found, requested_resources=[])
    spec.generate_request_groups_from_pci_requests()
    return {
        "requests": [[each.count, each.spec, each.alias_name, each.numa_policy] for each in found.requests],
        "groups": [[group.resources, sorted(group.required_traits)] for group in spec.requested_resources],
    }
