"""A driver whose builds end when a test lets them."""

import asyncio
from collections.abc import Collection, Mapping

from roost.agent.drivers import Hardware
from roost.agent.provider_tree import ProviderTree
from roost.model.instance import Instance
from roost.model.inventory import Inventory


class HeldDriver:
    """A driver whose builds wait for ``go``.

    ``calls`` lists what began and ended. Builds raise ``failure`` if it is set. The next ``destroy_failures``
    destructions fail. ``roots``: those of its nodes, by name. ``stopped``: the attempts of stopped guests.
    """

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.failure: Exception | None = None
        self.destroy_failures = 0
        self.calls: list[str] = []
        self.there: dict[str, int] = {}
        self.stopped: dict[str, int] = {}
        self.roots: dict[str, str] | None = None

    def nodes(self) -> Mapping[str, str] | None:
        return self.roots

    def update_provider_tree(
        self, tree: ProviderTree, nodename: str, allocations: Mapping[str, object] | None = None
    ) -> None:
        tree.update_inventory(nodename, {"VCPU": Inventory(4)})

    def metrics(self) -> dict[str, float]:
        return {"heat": 40.0}

    def hardware(self) -> Hardware | None:
        return None

    def guests(self) -> Mapping[str, int]:
        return self.there

    async def recover(self, instances: Collection[Instance]) -> None:
        names = sorted(each.uuid for each in instances)
        self.calls.append(f"recover {' '.join(names)}".rstrip())
        self.there.update({each.uuid: each.attempt for each in instances})

    async def prepare(self, instance: Instance) -> None:
        self.calls.append(f"build {instance.uuid} {instance.attempt}")
        await self.go.wait()
        if self.failure is not None:
            raise self.failure

    async def start(self, instance: Instance) -> None:
        self.there[instance.uuid] = instance.attempt
        self.calls.append(f"built {instance.uuid}")

    async def destroy(self, instance: str) -> None:
        self.calls.append(f"destroy {instance}")
        if self.destroy_failures:
            self.destroy_failures -= 1
            raise RuntimeError("the hypervisor does not answer")
        self.there.pop(instance, None)
        self.stopped.pop(instance, None)

    @property
    def keeps_disks(self) -> bool:
        return True

    async def stop(self, instance: str) -> None:
        self.calls.append(f"stop {instance}")
        if instance in self.there:
            self.stopped[instance] = self.there.pop(instance)

    async def start_again(self, instance: Instance) -> None:
        self.calls.append(f"start {instance.uuid} again")
        self.there[instance.uuid] = self.stopped.pop(instance.uuid)
