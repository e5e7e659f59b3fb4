"""The options of simulated hosts, in group ``simulated``."""

from pathlib import Path

from roost.agent.drivers.driver_loader import MakeDriver
from roost.agent.drivers.simulated import (
    FailureRule,
    GuestFiles,
    Script,
    SimulatedDriver,
    SimulatedHost,
    SimulatedProvider,
)
from roost.agent.drivers.simulated_migrations import LiveScript, SimulatedNetwork
from roost.agent.drivers.simulated_profiles import numa_topology, pci_device_pools, read_profile
from roost.model.errors import OperatorError
from roost.model.inventory import Inventory
from roost.process.option_source import Source
from roost.process.options import OptionStruct, option


class SimulatedOptions(OptionStruct, frozen=True, group="simulated"):
    """The inventory and guests of simulated hosts."""

    profile: str | None = option(
        None,
        help="The providers of a simulated host: the name of a profile, or the path of such a file, with a "
        "slash. Instead of the amounts, NUMA cells, devices and GPUs of the other options.",
    )
    vcpus: int = option(64, min=1, help="vCPUs of a simulated host.")
    memory_mb: int = option(448 * 1024, min=1, help="Memory of a simulated host, in MiB.")
    disk_gb: int = option(4000, min=1, help="Disk of a simulated host, in GiB.")
    numa_cells: int = option(
        0,
        min=0,
        max=64,
        help="NUMA cells that a simulated host reports; vCPUs and memory are divided among them.",
    )
    pci_devices: int = option(
        0,
        min=0,
        max=256,
        help="PCI devices 10de:2236 that a simulated host reports, dealt out to its NUMA cells.",
    )
    gpus: int = option(
        0,
        min=0,
        max=64,
        help="GPUs of a simulated host: nested providers HOST-gpu1 and so on, each with VGPU.",
    )
    vgpus_of_gpu: int = option(1, min=1, help="The virtual GPUs of each of them.")
    traits: tuple[str, ...] = option((), help="Traits of the root provider of a simulated host.")
    build_seconds: float = option(0.0, min=0.0, help="How long a simulated build takes.")
    failure_rate: float = option(0.0, min=0.0, max=1.0, help="The share of builds that fail.")
    stop_failure_rate: float = option(
        0.0, min=0.0, max=1.0, help="The share of guests that cannot be stopped, so that they cannot move."
    )
    live_seconds: float = option(
        0.0, min=0.0, help="How long it takes a guest that runs to go to another host of the same process."
    )
    live_failure_rate: float = option(
        0.0, min=0.0, max=1.0, help="The share of such guests that stay where they are after that time."
    )
    live_loss_rate: float = option(
        0.0, min=0.0, max=1.0, help="The share of such guests that are lost on their way."
    )
    seed: int = option(0, help="The seed by which it is drawn which builds, stops and migrations fail.")


def simulated_drivers(source: Source) -> MakeDriver:
    """Return a maker of simulated hosts by the options of a source. Raises `OperatorError`.

    Their guests outlive the agent.
    """
    options = source.read(SimulatedOptions)
    rules = (FailureRule(options.failure_rate),) if options.failure_rate else ()
    live = LiveScript(options.live_seconds, options.live_failure_rate, options.live_loss_rate)
    script = Script(options.build_seconds, rules, options.seed, options.stop_failure_rate, live)
    network = SimulatedNetwork()
    if options.numa_cells > options.vcpus:
        raise OperatorError(f"[simulated] numa_cells {options.numa_cells} is more than vcpus {options.vcpus}")
    inventory = {
        "VCPU": Inventory(options.vcpus),
        "MEMORY_MB": Inventory(options.memory_mb),
        "DISK_GB": Inventory(options.disk_gb),
    }

    profile = read_profile(options.profile) if options.profile else None
    of_gpu = {"VGPU": Inventory(options.vgpus_of_gpu)}
    gpus = tuple(SimulatedProvider(f"gpu{number}", of_gpu) for number in range(1, options.gpus + 1))
    topology = numa_topology(options.numa_cells, options.vcpus, options.memory_mb)
    pools = pci_device_pools(options.pci_devices, options.numa_cells)

    def make(host: str, directory: Path) -> SimulatedDriver:
        if profile is not None:
            simulated = profile.host(host, options.traits)
        else:
            simulated = SimulatedHost(
                host,
                inventory,
                children=gpus,
                traits=options.traits,
                numa_topology=topology,
                pci_device_pools=pools,
            )
        return SimulatedDriver(simulated, script, GuestFiles(directory / "guests"), network)

    return make
