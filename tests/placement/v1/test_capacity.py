"""``/v1/capacity``: the sums of all hosts, and the fullest of them."""

from support.placement_api import uuid_of
from support.v1_api import V1Api, fault_of


def test_capacity_and_use_are_those_of_all_providers(v1: V1Api) -> None:
    nothing = v1.read("/v1/capacity")
    assert (nothing["providers"], nothing["trees"], nothing["resources"], nothing["fullest"]) == (
        0,
        0,
        {},
        [],
    )
    for name in "abc":
        v1.provider(name, VCPU=8, DISK_GB=100)
    v1.claim(uuid_of("x"), uuid_of("b"), VCPU=2, DISK_GB=50)
    v1.claim(uuid_of("y"), uuid_of("c"), VCPU=6)
    found = v1.read("/v1/capacity?fullest=1")
    assert (found["providers"], found["trees"]) == (3, 3)
    assert found["version"] > nothing["version"]
    assert found["resources"] == {
        "DISK_GB": {"providers": 3, "capacity": 300, "used": 50},
        "VCPU": {"providers": 3, "capacity": 24, "used": 8},
    }
    assert found["fullest"] == [
        {"uuid": uuid_of("c"), "name": "c", "resource_class": "VCPU", "capacity": 8, "used": 6}
    ]
    assert fault_of(v1.fetch("/v1/capacity?fullest=1001"))[0] == 400
