"""`DriverOptions`: the options of a host's driver, and the settings of guests that follow from them."""

import shutil

import msgspec

from roost.agent.drivers.libvirt.domain import GuestOptions
from roost.agent.drivers.libvirt.images import DiskOptions
from roost.agent.drivers.libvirt.inventory import CpuSets, MdevOptions, Ratios, Reserved, UsedCpus
from roost.agent.drivers.libvirt.pci import DeviceSpec
from roost.agent.drivers.libvirt.view import AUTO, LibvirtView


class DriverOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a host's driver. ``counts_others``: guests of others count as use of the host."""

    disks: DiskOptions
    virt_type: str = AUTO
    machine: str | None = None
    cpu_mode: str | None = None
    cpu_sets: CpuSets = CpuSets()
    reserved: Reserved = Reserved()
    ratios: Ratios = Ratios()
    mdevs: MdevOptions = MdevOptions()
    device_specs: tuple[DeviceSpec, ...] = ()
    counts_others: bool = True
    refresh_seconds: float = 10.0

    def disk_gb(self) -> int | None:
        """Return the GiB of the file system with the folder of guests; None while it does not exist."""
        try:
            return shutil.disk_usage(self.disks.instances).total // 1024**3
        except OSError:
            return None


def guest_options(options: DriverOptions, view: LibvirtView, cpus: UsedCpus) -> GuestOptions:
    """Return the settings of all guests of a host. By default guests of KVM have the host's CPU model."""
    mode = options.cpu_mode
    if mode is None and view.guests.domain_type == "kvm" and view.guests.host_model is not None:
        mode = "host-model"
    sizes = [pages.size_kb for cell in view.host.cells for pages in cell.pages]
    return GuestOptions(
        machine=options.machine,
        cpu_mode=mode,
        shared_cpus=None if options.cpu_sets == CpuSets() else cpus.shared,
        base_page_kb=min(sizes, default=4),
    )


def shared_of_cell(view: LibvirtView, cpus: UsedCpus) -> dict[int, frozenset[int]]:
    """Return the shared CPUs of each cell of a host."""
    return {cell.id: frozenset(cpu.id for cpu in cell.cpus) & cpus.shared for cell in view.host.cells}
