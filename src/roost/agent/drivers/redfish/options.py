"""The options of bare metal over Redfish, in group ``redfish``."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from oslo_config import cfg

from roost.agent.drivers.driver_loader import MakeDriver
from roost.model.errors import OperatorError
from roost.process.option_source import Source

GROUP = "redfish"

OPTIONS = [
    cfg.StrOpt(
        "nodes",
        help="The file of the nodes of a host with the driver redfish, in TOML. It is read at the start.",
    ),
    cfg.FloatOpt(
        "look_seconds",
        default=30.0,
        min=0.05,
        help="Seconds between two looks at the power of all nodes.",
    ),
    cfg.IntOpt(
        "power_failures",
        default=3,
        min=1,
        help="Looks without an answer, one after the other, after which the power of a node is unknown. Such "
        "a node is reserved until its BMC answers.",
    ),
    cfg.FloatOpt("request_seconds", default=30.0, min=0.1, help="How long a BMC may take for one request."),
    cfg.IntOpt("threads", default=32, min=1, help="BMCs that are asked at the same time, at most."),
    cfg.FloatOpt(
        "grace_seconds",
        default=60.0,
        min=0.0,
        help="How long a system may take to end before the power is taken. 0: it is taken at once.",
    ),
    cfg.FloatOpt(
        "power_seconds",
        default=120.0,
        min=0.1,
        help="Seconds within which a machine must be seen on, or off, after its BMC was asked.",
    ),
    cfg.FloatOpt(
        "power_poll_seconds",
        default=1.0,
        min=0.01,
        help="Seconds between two looks at a machine that is being switched on or off, or cleaned.",
    ),
]


def redfish_drivers(source: Source) -> MakeDriver:
    """Return a maker of bare metal drivers by the options of a source. Raises `OperatorError`."""
    from roost.agent.drivers.redfish.bmc import BmcClient
    from roost.agent.drivers.redfish.driver import RedfishDriver
    from roost.agent.drivers.redfish.machines import PowerTimes
    from roost.agent.drivers.redfish.nodes_file import read_nodes_file
    from roost.agent.drivers.redfish.power_watch import Rack
    from roost.agent.drivers.redfish.words import FOLDER

    conf = source.open()
    source.register(conf, GROUP, OPTIONS)
    group = conf[GROUP]
    if not group.nodes:
        raise OperatorError(f"[{GROUP}] nodes is missing: the file of the nodes")
    threads = ThreadPoolExecutor(group.threads, thread_name_prefix="bmc")
    times = PowerTimes(grace=group.grace_seconds, power=group.power_seconds, poll=group.power_poll_seconds)

    def make(host: str, directory: Path) -> RedfishDriver:
        lines = [
            (bmc.endpoint, BmcClient(bmc, group.request_seconds, threads), bmc.nodes)
            for bmc in read_nodes_file(Path(group.nodes), host)
        ]
        return RedfishDriver(
            Rack(lines, group.power_failures),
            directory / FOLDER,
            times,
            look_seconds=group.look_seconds,
            first_seconds=2 * group.request_seconds,
        )

    return make
