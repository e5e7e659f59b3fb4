"""Sends every GET request about a state, and makes the answers comparable."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import quote

from support.exchange.asking import Answer, Service
from support.exchange.rich_state import AGGREGATES, CONSUMERS, PROJECTS, PROVIDERS, SINGLE, uid

VERSIONS = ("1.0", "1.12", "1.39")
"""Microversions that are asked for: one of each form of the answers. All would take minutes."""

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "PCPU", "PCI_DEVICE", "CUSTOM_MAGIC")
INCOMPLETE = "00000000-0000-0000-0000-000000000000"


def paths() -> Iterator[str]:
    """Yield the paths of all GET requests about a state."""
    yield from ("/", "/resource_providers", "/resource_classes", "/traits", "/traits?associated=true")
    for name in [*PROVIDERS, "new child", "nobody"]:
        path = f"/resource_providers/{uid(name)}"
        yield path
        for part in ("inventories", "usages", "allocations", "aggregates", "traits"):
            yield f"{path}/{part}"
        yield f"{path}/inventories/VCPU"
    for name in (*SINGLE, "host-0-pci", "new child", "nobody"):
        yield f"/resource_providers/{uid(name)}/inventories/CUSTOM_MAGIC"
        yield f"/resource_providers?in_tree={uid(name)}"
        yield f"/resource_providers?name={quote(name)}"
    for consumer in [*CONSUMERS, "new consumer", "nobody"]:
        yield f"/allocations/{uid(consumer)}"
    for name in (*CLASSES, "CUSTOM_GONE", "CUSTOM_NEW", "CUSTOM_LICENCE"):
        yield f"/resource_classes/{name}"
    for name in ("COMPUTE_NODE", "CUSTOM_FAST", "CUSTOM_UNUSED", "CUSTOM_NEW", "CUSTOM_NONE"):
        yield f"/traits/{name}"
    yield "/traits?name=startswith:CUSTOM_"
    for project in [*PROJECTS, "new", INCOMPLETE]:
        query = f"/usages?project_id={quote(project)}"
        yield from (query, f"{query}&user_id=user", f"{query}&user_id=another")
        yield from (f"{query}&consumer_type={each}" for each in ("all", "unknown", "INSTANCE"))
    for aggregate in AGGREGATES:
        yield f"/resource_providers?member_of={aggregate}"
    for query in (
        "resources=VCPU:2",
        "resources=MEMORY_MB:256&required=COMPUTE_NODE",
        "resources=PCI_DEVICE:4",
        "required=CUSTOM_FAST,!COMPUTE_NODE",
    ):
        yield f"/resource_providers?{query}"
    for query in (
        "resources=VCPU:2",
        "resources=VCPU:2,MEMORY_MB:1024",
        "resources=VCPU:1,MEMORY_MB:256,DISK_GB:10",
        "resources=DISK_GB:10",
        "resources=CUSTOM_MAGIC:2,PCI_DEVICE:1",
        f"resources=MEMORY_MB:256&member_of={AGGREGATES[0]}",
        "resources=MEMORY_MB:256&resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate",
        f"resources=SRIOV_NET_VF:1,PCI_DEVICE:1&in_tree={uid('late child')}",
    ):
        yield f"/allocation_candidates?{query}"


def ask_everything(service: Service, *versions: str, every: int = 1) -> dict[tuple[str, str], Answer]:
    """Return the comparable answers to every ``every``-th path in these versions, or in `VERSIONS`."""
    return {
        (version, path): comparable(service.ask("GET", path, None, version))
        for version in versions or VERSIONS
        for path in islice(paths(), 0, None, every)
    }


def comparable(answer: Answer) -> Answer:
    """Return an answer without what may differ: the order of lists, and the texts of errors."""
    return Answer(answer.status, _ordered(answer.body))


def _ordered(value: Any) -> Any:
    match value:
        case {"errors": [{"status": status, **more}]}:
            return {"status": status, "code": more.get("code")}
        case dict():
            return {key: _ordered(each) for key, each in value.items()}
        case list():
            return sorted(
                (_ordered(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True)
            )
        case _:
            return value


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def differences(
    ours: dict[tuple[str, str], Answer], theirs: dict[tuple[str, str], Answer]
) -> dict[tuple[str, str], tuple[Answer, Answer]]:
    """Return the requests whose answers differ, with both answers."""
    return {key: (ours[key], theirs[key]) for key in ours if ours[key] != theirs[key]}
