"""Powers a machine off by its BMC, from any machine that reaches it: for hosts whose agent is silent."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from roost.agent.drivers.redfish.bmc import BmcClient
from roost.agent.drivers.redfish.machines import Machines, PowerTimes
from roost.agent.drivers.redfish.nodes_file import read_nodes_file
from roost.agent.drivers.redfish.power_watch import WatchedNode
from roost.model.errors import OperatorError


async def power_off(file: Path, name: str, *, seconds: float, request_seconds: float) -> None:
    """Take the power of the machine that a file names, and return when its BMC says that it is off.

    ``file``: as that of the driver's nodes. ``seconds``: until the machine must be off. ``request_seconds``:
    of one request to the BMC. Raises `OperatorError`: there is no such machine. Raises `RedfishError`: it is
    not known to be off.
    """
    found = [
        (bmc, node) for bmc in read_nodes_file(file, name) for node in bmc.nodes if node.entry.name == name
    ]
    if not found:
        raise OperatorError(f"the file of nodes {file} names no machine {name}")
    [(bmc, node)] = found
    with ThreadPoolExecutor(1, thread_name_prefix="bmc") as threads:
        machine = WatchedNode(node, BmcClient(bmc, request_seconds, threads))
        await Machines(PowerTimes(grace=0.0, power=seconds)).switch_off(machine, force=True)
