"""A driver whose builds end when a test lets them."""

import asyncio
from collections.abc import Collection

from roost.compute.errors import BuildFailed
from roost.compute.hardware import Hardware
from roost.compute.provider_tree import ProviderTree
from roost.model.instance import Instance
from roost.model.inventory import Inventory


class HeldDriver:
    """A driver whose builds wait for ``go``.

    ``calls`` lists what began and ended. Builds raise ``failure`` if it is set. The next ``destroy_failures``
    destructions fail.
    """

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.failure: Exception | None = None
        self.destroy_failures = 0
        self.calls: list[str] = []
        self.there: set[str] = set()

    def update_provider_tree(self, tree: ProviderTree) -> None:
        tree.update_inventory(tree.root.name, {"VCPU": Inventory(4)})

    def metrics(self) -> dict[str, float]:
        return {"heat": 40.0}

    def hardware(self) -> Hardware | None:
        return None

    def guests(self) -> Collection[str]:
        return self.there

    async def recover(self, instances: Collection[Instance]) -> None:
        names = sorted(each.uuid for each in instances)
        self.calls.append(f"recover {' '.join(names)}".rstrip())
        self.there.update(names)

    async def build(self, instance: Instance) -> None:
        self.calls.append(f"build {instance.uuid} {instance.attempt}")
        self.there.add(instance.uuid)
        await self.go.wait()
        if self.failure is not None:
            if isinstance(self.failure, BuildFailed):
                self.there.discard(instance.uuid)
            raise self.failure
        self.calls.append(f"built {instance.uuid}")

    async def destroy(self, instance: str) -> None:
        self.calls.append(f"destroy {instance}")
        if self.destroy_failures:
            self.destroy_failures -= 1
            raise RuntimeError("the hypervisor does not answer")
        self.there.discard(instance)
