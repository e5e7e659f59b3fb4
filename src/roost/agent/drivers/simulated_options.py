"""The options of simulated hosts, in group ``simulated``."""

from pathlib import Path

from oslo_config import cfg

from roost.agent.drivers.driver_loader import MakeDriver
from roost.agent.drivers.simulated import (
    FailureRule,
    Script,
    SimulatedDriver,
    SimulatedHost,
    SimulatedProvider,
)
from roost.agent.drivers.simulated_guests import GuestFiles
from roost.agent.drivers.simulated_parts import numa_topology, pci_device_pools
from roost.agent.drivers.simulated_profiles import read_profile
from roost.model.errors import OperatorError
from roost.model.inventory import Inventory
from roost.process.option_source import Source

GROUP = "simulated"

OPTIONS = [
    cfg.StrOpt(
        "profile",
        help="The providers of a simulated host: the name of a profile, or the path of such a file, with a "
        "slash. Instead of the amounts, NUMA cells, devices and GPUs of the other options.",
    ),
    cfg.IntOpt("vcpus", default=64, min=1, help="vCPUs of a simulated host."),
    cfg.IntOpt("memory_mb", default=448 * 1024, min=1, help="Memory of a simulated host, in MiB."),
    cfg.IntOpt("disk_gb", default=4000, min=1, help="Disk of a simulated host, in GiB."),
    cfg.IntOpt(
        "numa_cells",
        default=0,
        min=0,
        max=64,
        help="NUMA cells that a simulated host reports; vCPUs and memory are divided among them.",
    ),
    cfg.IntOpt(
        "pci_devices",
        default=0,
        min=0,
        max=256,
        help="PCI devices 10de:2236 that a simulated host reports, dealt out to its NUMA cells.",
    ),
    cfg.IntOpt(
        "gpus",
        default=0,
        min=0,
        max=64,
        help="GPUs of a simulated host: nested providers HOST-gpu1 and so on, each with VGPU.",
    ),
    cfg.IntOpt("vgpus_of_gpu", default=1, min=1, help="The virtual GPUs of each of them."),
    cfg.ListOpt("traits", default=[], help="Traits of the root provider of a simulated host."),
    cfg.FloatOpt("build_seconds", default=0.0, min=0.0, help="How long a simulated build takes."),
    cfg.FloatOpt("failure_rate", default=0.0, min=0.0, max=1.0, help="The share of builds that fail."),
    cfg.IntOpt("seed", default=0, help="The seed by which it is drawn which builds fail."),
]


def simulated_drivers(source: Source) -> MakeDriver:
    """Return a maker of simulated hosts by the options of a source. Raises `OperatorError`.

    Their guests outlive the agent.
    """
    conf = source.open()
    source.register(conf, GROUP, OPTIONS)
    group = conf[GROUP]
    rules = (FailureRule(group.failure_rate),) if group.failure_rate else ()
    script = Script(group.build_seconds, rules, group.seed)
    if group.numa_cells > group.vcpus:
        raise OperatorError(f"[simulated] numa_cells {group.numa_cells} is more than vcpus {group.vcpus}")
    inventory = {
        "VCPU": Inventory(group.vcpus),
        "MEMORY_MB": Inventory(group.memory_mb),
        "DISK_GB": Inventory(group.disk_gb),
    }

    profile = read_profile(group.profile) if group.profile else None
    of_gpu = {"VGPU": Inventory(group.vgpus_of_gpu)}
    gpus = tuple(SimulatedProvider(f"gpu{number}", of_gpu) for number in range(1, group.gpus + 1))
    topology = numa_topology(group.numa_cells, group.vcpus, group.memory_mb)
    pools = pci_device_pools(group.pci_devices, group.numa_cells)

    def make(host: str, directory: Path) -> SimulatedDriver:
        traits = tuple(group.traits)
        if profile is not None:
            simulated = profile.host(host, traits)
        else:
            simulated = SimulatedHost(
                host,
                inventory,
                children=gpus,
                traits=traits,
                numa_topology=topology,
                pci_device_pools=pools,
            )
        return SimulatedDriver(simulated, script, GuestFiles(directory / "guests"))

    return make
