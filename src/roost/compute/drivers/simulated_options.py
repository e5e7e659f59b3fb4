"""The options of simulated hosts, in group ``simulated``."""

from pathlib import Path

from oslo_config import cfg

from roost.auth import Source
from roost.compute.drivers.loading import MakeDriver
from roost.compute.drivers.simulated import FailureRule, Script, SimulatedDriver, SimulatedHost
from roost.compute.drivers.simulated_guests import GuestFiles
from roost.model.inventory import Inventory

GROUP = "simulated"

OPTIONS = [
    cfg.IntOpt("vcpus", default=64, min=1, help="vCPUs of a simulated host."),
    cfg.IntOpt("memory_mb", default=448 * 1024, min=1, help="Memory of a simulated host, in MiB."),
    cfg.IntOpt("disk_gb", default=4000, min=1, help="Disk of a simulated host, in GiB."),
    cfg.FloatOpt("build_seconds", default=0.0, min=0.0, help="How long a simulated build takes."),
    cfg.FloatOpt("failure_rate", default=0.0, min=0.0, max=1.0, help="The share of builds that fail."),
    cfg.IntOpt("seed", default=0, help="The seed by which it is drawn which builds fail."),
]


def simulated_drivers(source: Source) -> MakeDriver:
    """Simulated hosts by the options of a source. Their guests outlive the agent. Raises `OperatorError`."""
    conf = source.open()
    source.register(conf, GROUP, OPTIONS)
    group = conf[GROUP]
    rules = (FailureRule(group.failure_rate),) if group.failure_rate else ()
    script = Script(group.build_seconds, rules, group.seed)
    inventory = {
        "VCPU": Inventory(group.vcpus),
        "MEMORY_MB": Inventory(group.memory_mb),
        "DISK_GB": Inventory(group.disk_gb),
    }

    def make(host: str, directory: Path) -> SimulatedDriver:
        return SimulatedDriver(SimulatedHost(host, inventory), script, GuestFiles(directory / "guests"))

    return make
