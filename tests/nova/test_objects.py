"""Nova's own objects: the RequestSpec that Nova serialises is read, and Nova reads the Selections."""

from typing import Any

import msgspec

from roost.model.spec import Selection
from roost.scheduler.api.wire.language import language_of
from roost.scheduler.api.wire.nova_selection import nova_selection
from roost.scheduler.nodes.cells import uuid_of_cell
from roost.scheduler.nodes.table import NodeTable
from support.nova import Nova
from support.nova_specs import UUID, rich_request_spec


def test_the_request_spec_of_nova_is_read(nova: Nova) -> None:
    theirs: dict[str, Any] = nova.ask("objects", "serialised")
    by_hand = rich_request_spec()
    found = language_of(theirs, NodeTable()).read_spec(theirs)
    expected = language_of(by_hand, NodeTable()).read_spec(by_hand)
    assert found.instances == expected.instances == (UUID,)
    [pci] = found.spec.pci_requests
    [network] = found.spec.requested_networks
    assert (pci.id, network.port_id) == (UUID, UUID)
    same = {"pci_requests": (), "requested_networks": ()}
    assert msgspec.structs.replace(found.spec, **same) == msgspec.structs.replace(expected.spec, **same)


def test_nova_reads_a_selection(nova: Nova) -> None:
    limits = {
        "vcpu": 4,
        "numa_topology": {
            "cpu_allocation_ratio": 16.0,
            "ram_allocation_ratio": 1.5,
            "network_metadata": {"physnets": ["physnet1"], "tunneled": False},
        },
    }
    ours = Selection("host1", UUID, "cell1", {UUID: {"VCPU": 1}}, {"": [UUID]}, 1.5, "az1", limits)
    read = nova.ask("objects", "selected", selection=nova_selection(ours, "node1"))
    read.pop("dict")
    assert read == {
        "host": "host1",
        "node": UUID,
        "nodename": "node1",
        "cell": uuid_of_cell("cell1"),
        "zone": "az1",
        "vcpu": 4,
        "cpu_ratio": 16.0,
        "physnets": ["physnet1"],
        "allocation_request": {"allocations": {UUID: {"resources": {"VCPU": 1}}}, "mappings": {"": [UUID]}},
        "version": "1.36",
    }
