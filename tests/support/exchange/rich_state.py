"""Creates a state with examples of all that Placement stores, through its API."""

import uuid
from typing import Any

from support.exchange.asking import LATEST, Service

HOSTS = 3
SHARING = "MISC_SHARES_VIA_AGGREGATE"
PROJECTS = ["p0000000-nova", "project with spaces", "P" * 255]
OWNER = {"project_id": PROJECTS[0], "user_id": "user"}


def uid(name: str) -> str:
    """Return the uuid for a name."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


AGGREGATES = [uid("rack"), uid("storage"), uid("rack").upper()]
TREES = {
    f"host-{number}": [f"host-{number}-numa-0", f"host-{number}-numa-1", f"host-{number}-pci"]
    for number in range(HOSTS)
}
SINGLE = ["shared disk", "höst ß 🐦", "odd", "late child", "empty", "overcommitted"]
PROVIDERS = [*TREES, *(name for children in TREES.values() for name in children), *SINGLE]
CONSUMERS = [f"consumer-{number}" for number in range(20)]


class Maker:
    """Writes to a service. Every write must succeed."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def do(self, method: str, path: str, body: Any = None, version: str = LATEST) -> Any:
        answer = self._service.ask(method, path, body, version)
        assert answer.status < 300, (method, path, body, answer)
        return answer.body

    def provider(self, name: str, parent: str | None = None) -> None:
        body = {"name": name, "uuid": uid(name)}
        if parent is not None:
            body["parent_provider_uuid"] = uid(parent)
        self.do("POST", "/resource_providers", body)

    def generation(self, name: str) -> int:
        found: int = self.do("GET", f"/resource_providers/{uid(name)}")["generation"]
        return found

    def inventories(self, name: str, **inventories: Any) -> None:
        """Write inventories: a total or a whole record for each class."""
        records = {
            key: {"total": value} if isinstance(value, int) else value for key, value in inventories.items()
        }
        body = {"inventories": records, "resource_provider_generation": self.generation(name)}
        self.do("PUT", f"/resource_providers/{uid(name)}/inventories", body)

    def traits(self, name: str, *traits: str) -> None:
        body = {"traits": list(traits), "resource_provider_generation": self.generation(name)}
        self.do("PUT", f"/resource_providers/{uid(name)}/traits", body)

    def aggregates(self, name: str, *aggregates: str) -> None:
        body = {"aggregates": list(aggregates), "resource_provider_generation": self.generation(name)}
        self.do("PUT", f"/resource_providers/{uid(name)}/aggregates", body)

    def claim(
        self, consumer: str, held: dict[str, dict[str, int]], version: str = LATEST, **more: Any
    ) -> None:
        major, minor = (int(part) for part in version.split("."))
        if (major, minor) < (1, 12):
            allocations: Any = [
                {"resource_provider": {"uuid": uid(name)}, "resources": resources}
                for name, resources in held.items()
            ]
        else:
            allocations = {uid(name): {"resources": resources} for name, resources in held.items()}
        body: dict[str, Any] = {"allocations": allocations}
        if minor >= 8:
            body |= OWNER
        if minor >= 28:
            body["consumer_generation"] = None
        if minor >= 38:
            body["consumer_type"] = "INSTANCE"
        self.do("PUT", f"/allocations/{uid(consumer)}", body | more, version)


def make(service: Service) -> None:
    """Create the whole state."""
    maker = Maker(service)
    for name in ("CUSTOM_GONE", "CUSTOM_MAGIC", "CUSTOM_LICENCE"):
        maker.do("PUT", f"/resource_classes/{name}")
    maker.do("DELETE", "/resource_classes/CUSTOM_GONE")
    for name in ("CUSTOM_FAST", "CUSTOM_UNUSED", "CUSTOM_LEFT"):
        maker.do("PUT", f"/traits/{name}")
    _make_providers(maker)
    _make_inventories(maker)
    _make_claims(maker)


def _make_providers(maker: Maker) -> None:
    maker.provider("late child")
    maker.provider("to be deleted")
    for host, children in TREES.items():
        maker.provider(host)
        for name in children[:2]:
            maker.provider(name, host)
        maker.provider(children[2], children[1])
        maker.aggregates(host, AGGREGATES[0], AGGREGATES[1])
    for name in SINGLE:
        if name != "late child":
            maker.provider(name)
    maker.do("DELETE", f"/resource_providers/{uid('to be deleted')}")
    # Older than what it is under.
    body = {"name": "late child", "parent_provider_uuid": uid("host-2-pci")}
    maker.do("PUT", f"/resource_providers/{uid('late child')}", body)
    maker.aggregates("shared disk", AGGREGATES[1])
    maker.aggregates("odd", AGGREGATES[0], AGGREGATES[2])
    maker.traits("shared disk", SHARING, "STORAGE_DISK_SSD")
    maker.traits("höst ß 🐦", "CUSTOM_FAST", "HW_CPU_X86_AVX2")
    for host in TREES:
        maker.traits(host, "COMPUTE_NODE", "HW_CPU_X86_AVX2")


def _make_inventories(maker: Maker) -> None:
    for host, (one, other, pci) in TREES.items():
        maker.inventories(host, MEMORY_MB={"total": 65536, "reserved": 512, "step_size": 256})
        for numa in (one, other):
            maker.inventories(numa, VCPU={"total": 16, "allocation_ratio": 4.0, "max_unit": 16}, PCPU=8)
        maker.inventories(
            pci, PCI_DEVICE=4, CUSTOM_MAGIC={"total": 8, "min_unit": 2, "allocation_ratio": 0.77}
        )
    maker.inventories("shared disk", DISK_GB={"total": 100000, "reserved": 100, "allocation_ratio": 1.5})
    maker.inventories("höst ß 🐦", VCPU=4, MEMORY_MB=4096, CUSTOM_LICENCE=2**31 - 1)
    maker.inventories(
        "odd",
        VCPU={"total": 10, "min_unit": 5, "max_unit": 2},
        MEMORY_MB={"total": 1000, "reserved": 1000},
        DISK_GB={"total": 1000, "allocation_ratio": 0.0},
        PCPU={"total": 3, "allocation_ratio": 123456.75},
    )
    maker.inventories("late child", SRIOV_NET_VF=16)
    maker.inventories("overcommitted", VCPU=8, MEMORY_MB=8192)


def _make_claims(maker: Maker) -> None:
    whole = {"host-0": {"MEMORY_MB": 1024}, "host-0-numa-0": {"VCPU": 2}, "shared disk": {"DISK_GB": 20}}
    maker.claim("consumer-0", whole)
    maker.claim("consumer-0", whole, consumer_generation=1, user_id="another")
    maker.claim("consumer-1", {"höst ß 🐦": {"VCPU": 1}}, "1.0")
    maker.claim("consumer-2", {"höst ß 🐦": {"VCPU": 1, "MEMORY_MB": 1}}, "1.8")
    maker.claim("consumer-3", {"host-1": {"MEMORY_MB": 512}}, "1.12", project_id=PROJECTS[1])
    maker.claim("consumer-4", {"host-1": {"MEMORY_MB": 512}}, "1.28", project_id=PROJECTS[2])
    maker.claim("consumer-5", {"host-2-pci": {"PCI_DEVICE": 1, "CUSTOM_MAGIC": 2}}, consumer_type="MIGRATION")
    maker.claim("consumer-6", {"overcommitted": {"VCPU": 8, "MEMORY_MB": 4096}})
    maker.claim("consumer-7", {"overcommitted": {"MEMORY_MB": 4096}}, project_id=PROJECTS[1])
    for number, consumer in enumerate(CONSUMERS[8:]):
        maker.claim(
            consumer, {f"host-{number % HOSTS}-numa-1": {"VCPU": 1 + number}}, consumer_type="INSTANCE"
        )
    maker.inventories("overcommitted", VCPU=4, MEMORY_MB={"total": 8192, "max_unit": 1024})


def carry_on(service: Service) -> None:
    """Create something new of every kind, which tests ids of new rows and the generations."""
    maker = Maker(service)
    maker.do("PUT", "/resource_classes/CUSTOM_NEW")
    maker.do("PUT", "/traits/CUSTOM_NEW")
    maker.provider("new child", "host-1")
    maker.inventories("new child", CUSTOM_NEW=5, VCPU=1)
    maker.traits("new child", "CUSTOM_NEW")
    maker.aggregates("new child", uid("new aggregate"), AGGREGATES[0])
    maker.claim(
        "new consumer", {"new child": {"VCPU": 1}}, project_id="new", user_id="new", consumer_type="NEW"
    )
    held = {"host-1": {"MEMORY_MB": 256}}
    maker.claim("consumer-0", held, consumer_generation=2)
    maker.claim("consumer-3", held, consumer_generation=1, consumer_type="MIGRATION")
    maker.do("DELETE", f"/allocations/{uid('consumer-8')}")
