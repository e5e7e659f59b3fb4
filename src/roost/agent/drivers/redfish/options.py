"""The options of bare metal over Redfish, in group ``redfish``."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from roost.agent.drivers.driver_loader import MakeDriver
from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.process.options import OptionStruct, option


class RedfishOptions(OptionStruct, frozen=True, group="redfish"):
    """The nodes of a host of bare metal, and the times of their BMCs."""

    nodes: str | None = option(
        None,
        help="The file of the nodes of a host with the driver redfish, in TOML. It is read at the start.",
    )
    look_seconds: float = option(30.0, min=0.05, help="Seconds between two looks at the power of all nodes.")
    power_failures: int = option(
        3,
        min=1,
        help="Looks without an answer, one after the other, after which the power of a node is unknown. Such "
        "a node is reserved until its BMC answers.",
    )
    request_seconds: float = option(30.0, min=0.1, help="How long a BMC may take for one request.")
    threads: int = option(32, min=1, help="BMCs that are asked at the same time, at most.")
    grace_seconds: float = option(
        60.0,
        min=0.0,
        help="How long a system may take to end before the power is taken. 0: it is taken at once.",
    )
    power_seconds: float = option(
        120.0,
        min=0.1,
        help="Seconds within which a machine must be seen on, or off, after its BMC was asked.",
    )
    power_poll_seconds: float = option(
        1.0,
        min=0.01,
        help="Seconds between two looks at a machine that is being switched on or off, or cleaned.",
    )


def redfish_drivers(source: Source) -> MakeDriver:
    """Return a maker of bare metal drivers by the options of a source. Raises `OperatorError`."""
    from roost.agent.drivers.redfish.bmc import BmcClient
    from roost.agent.drivers.redfish.driver import RedfishDriver
    from roost.agent.drivers.redfish.machines import PowerTimes
    from roost.agent.drivers.redfish.nodes_file import read_nodes_file
    from roost.agent.drivers.redfish.power_watch import Rack
    from roost.agent.drivers.redfish.words import FOLDER

    options = source.read(RedfishOptions)
    if not options.nodes:
        raise OperatorError("[redfish] nodes is missing: the file of the nodes")
    nodes = Path(options.nodes)
    threads = ThreadPoolExecutor(options.threads, thread_name_prefix="bmc")
    times = PowerTimes(
        grace=options.grace_seconds, power=options.power_seconds, poll=options.power_poll_seconds
    )

    def make(host: str, directory: Path) -> RedfishDriver:
        lines = [
            (bmc.endpoint, BmcClient(bmc, options.request_seconds, threads), bmc.nodes)
            for bmc in read_nodes_file(nodes, host)
        ]
        return RedfishDriver(
            Rack(lines, options.power_failures),
            directory / FOLDER,
            times,
            look_seconds=options.look_seconds,
            first_seconds=2 * options.request_seconds,
        )

    return make
