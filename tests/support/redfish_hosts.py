"""Drivers of bare metal hosts at emulated BMCs, for tests within one process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from roost.agent.drivers.redfish.bmc import BmcClient
from roost.agent.drivers.redfish.driver import RedfishDriver
from roost.agent.drivers.redfish.machines import PowerTimes
from roost.agent.drivers.redfish.nodes_file import read_nodes_file
from roost.agent.drivers.redfish.power_watch import Rack
from roost.agent.drivers.redfish.words import FOLDER
from roost.agent.provider_tree import ProviderTree
from roost.model.instance import Instance
from roost.model.names import provider_uuid
from support.cells import instance
from support.redfish_emulator import system_of
from support.waiting import patience

HOST = "rack"
CLASS = "CUSTOM_BAREMETAL_A"
FAILURES = 2


def node_of(number: int) -> str:
    """The uuid of the node of a machine."""
    return provider_uuid(f"{HOST}/n{number}")


def node_lines(number: int, more: str = "") -> str:
    """A node of the file."""
    return (
        f'[[bmcs.nodes]]\nname = "n{number}"\nsystem = "{system_of(number)}"\n'
        f'resource_class = "{CLASS}"\ntraits = ["CUSTOM_N{number}"]\n{more}\n'
    )


def write_nodes(path: Path, bmcs: dict[str, Sequence[str]], head: str = "") -> Path:
    """A file of nodes: their lines by endpoint."""
    path.write_text(
        head + "".join(f'\n[[bmcs]]\nendpoint = "{url}"\n{"".join(nodes)}' for url, nodes in bmcs.items())
    )
    return path


def wanted(name: str, number: int, attempt: int = 1) -> Instance:
    """An order to build on a node."""
    return msgspec.structs.replace(instance(name), host=HOST, node=node_of(number), attempt=attempt)


def reserved(driver: RedfishDriver, number: int) -> int:
    """How much of a node's inventory is reserved."""
    node = node_of(number)
    tree = ProviderTree()
    tree.new_root(node, node)
    driver.update_provider_tree(tree, node)
    return tree.data(node).inventory[CLASS]["reserved"]


async def eventually(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until a condition holds, while the driver goes on."""
    async with asyncio.timeout(patience(seconds)):
        while not condition():
            await asyncio.sleep(0.02)


async def is_offered(driver: RedfishDriver, number: int, offered: bool = True) -> None:
    """Wait until a node is offered, or reserved."""
    await eventually(lambda: (reserved(driver, number) == 0) is offered)


@asynccontextmanager
async def driver_of(
    nodes: Path,
    state: Path,
    *,
    grace: float = 0.0,
    power: float = 20.0,
    failures: int = 2,
    request: float = 5.0,
) -> AsyncIterator[RedfishDriver]:
    """A driver that has recovered; all that it does ends with the block, as by a kill."""
    with ThreadPoolExecutor(8) as threads:
        lines = [
            (bmc.endpoint, BmcClient(bmc, request, threads), bmc.nodes)
            for bmc in read_nodes_file(nodes, HOST)
        ]
        driver = RedfishDriver(
            Rack(lines, FAILURES),
            state / FOLDER,
            PowerTimes(grace=grace, power=power, poll=0.02),
            look_seconds=0.05,
            first_seconds=60.0,
        )
        before = asyncio.all_tasks()
        await driver.recover(())
        try:
            yield driver
        finally:
            begun = asyncio.all_tasks() - before
            for task in begun:
                task.cancel()
            await asyncio.gather(*begun, return_exceptions=True)


async def build(driver: RedfishDriver, order: Instance) -> None:
    """Build as an agent does."""
    await driver.prepare(order)
    await driver.start(order)
