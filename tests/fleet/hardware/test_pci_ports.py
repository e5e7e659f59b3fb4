"""The PCI devices that ports need."""

import pytest

from roost.fleet.hardware.pci_ports import VnicType, request_of_port


@pytest.mark.parametrize(
    ("vnic_type", "spec"),
    [
        ("normal", None),
        ("accelerator-direct", None),
        ("direct", {"physical_network": "net", "remote_managed": "False"}),
        ("direct-physical", {"physical_network": "net", "remote_managed": "False", "dev_type": "type-PF"}),
        ("vdpa", {"physical_network": "net", "remote_managed": "False", "dev_type": "vdpa"}),
        ("remote-managed", {"physical_network": "net", "remote_managed": "True"}),
    ],
)
def test_the_device_of_a_port(vnic_type: VnicType, spec: dict[str, str] | None) -> None:
    found = request_of_port("p", vnic_type, physical_network="net")
    assert (None if found is None else found.specs) == (None if spec is None else (spec,))


def test_a_port_has_a_policy_and_may_be_trusted() -> None:
    found = request_of_port("p", "direct", trusted=True, numa_policy="required")
    assert found is not None
    assert (found.id, found.requester_id, found.alias, found.numa_policy) == ("p", "p", None, "required")
    assert found.specs == ({"physical_network": None, "remote_managed": "False", "trusted": "True"},)
