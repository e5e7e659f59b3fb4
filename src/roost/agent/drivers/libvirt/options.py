"""The options of hosts with libvirt, in group ``libvirt``."""

from pathlib import Path
from typing import Literal

from roost.agent.drivers.driver_loader import MakeDriver
from roost.agent.drivers.libvirt.connection import LibvirtConnection, bindings
from roost.agent.drivers.libvirt.driver import LibvirtDriver
from roost.agent.drivers.libvirt.elements import range_set
from roost.agent.drivers.libvirt.guest_options import DriverOptions
from roost.agent.drivers.libvirt.images import DiskOptions
from roost.agent.drivers.libvirt.inventory import DISK, MEMORY, VCPU, CpuSets, MdevOptions, Ratios, Reserved
from roost.agent.drivers.libvirt.pci import read_device_spec
from roost.agent.drivers.libvirt.shared_disks import give_id
from roost.agent.drivers.libvirt.view import AUTO
from roost.agent.errors import ComputeError, UnusableOptions
from roost.model.errors import OperatorError
from roost.process.durable_file import why_no_directory
from roost.process.option_source import Source
from roost.process.options import OptionStruct, option


class LibvirtOptions(OptionStruct, frozen=True, group="libvirt"):
    """The hypervisor of a host, what guests may have of it, and their disks."""

    uri: str = option("qemu:///system", help="The hypervisor, as libvirt names it.")
    virt_type: str = option(
        AUTO,
        help="The domain type of guests, such as kvm or qemu. auto: kvm where the host has it, else the "
        "first that it tells.",
    )
    machine_type: str | None = option(
        None, help="The machine type of guests. Without it that of the hypervisor."
    )
    cpu_mode: Literal["host-model", "host-passthrough", "maximum"] | None = option(
        None, help="The CPU of guests. Without it host-model with kvm, and that of the hypervisor else."
    )
    cpu_shared_set: str | None = option(None, help="CPUs that vCPUs float over, as 0-3,8. VCPU counts them.")
    cpu_dedicated_set: str | None = option(
        None,
        help="CPUs that vCPUs are pinned to. PCPU counts them. Without this and cpu_shared_set all are "
        "shared.",
    )
    reserved_host_cpus: int = option(
        0, deprecated_group="DEFAULT", min=0, help="VCPU that guests do not get."
    )
    reserved_host_memory_mb: int = option(
        512, deprecated_group="DEFAULT", min=0, help="MEMORY_MB that guests do not get."
    )
    reserved_host_disk_gb: int = option(0, min=0, help="DISK_GB that guests do not get.")
    cpu_allocation_ratio: float | None = option(
        None, deprecated_group="DEFAULT", min=0.0001, help="The ratio of VCPU, whatever placement has."
    )
    ram_allocation_ratio: float | None = option(
        None, deprecated_group="DEFAULT", min=0.0001, help="That of MEMORY_MB."
    )
    disk_allocation_ratio: float | None = option(
        None, deprecated_group="DEFAULT", min=0.0001, help="That of DISK_GB."
    )
    initial_cpu_allocation_ratio: float = option(
        4.0, deprecated_group="DEFAULT", min=0.0001, help="The ratio of VCPU until placement has another."
    )
    initial_ram_allocation_ratio: float = option(
        1.0, deprecated_group="DEFAULT", min=0.0001, help="That of MEMORY_MB."
    )
    initial_disk_allocation_ratio: float = option(
        1.0, deprecated_group="DEFAULT", min=0.0001, help="That of DISK_GB."
    )
    enabled_mdev_types: tuple[str, ...] = option(
        (),
        help="Types of mediated devices that guests may have. A physical device makes the first that it can.",
    )
    mdev_classes: dict[str, str] = option(
        {}, help="Resource classes of types, as nvidia-36:CUSTOM_VGPU_LARGE. The others are VGPU."
    )
    device_spec: tuple[str, ...] = option(
        (),
        multi=True,
        help="PCI devices that guests may have, each time a JSON object with vendor_id, product_id and "
        "address, which may have * in it; what else it says is told of the devices, such as "
        "physical_network.",
    )
    instances_path: str | None = option(
        None,
        deprecated_group="DEFAULT",
        help="The folder of the guests' disks; DISK_GB is the size of its file system. Without it instances/ "
        "in the state directory.",
    )
    instances_path_shared: bool = option(
        False,
        help="instances_path is one folder that several hosts have, as on NFS: guests that stop can move "
        "between them, and keep their disks. The folder gets an id, by which the hosts know that it is the "
        "same one.",
    )
    images_path: str | None = option(
        None, help="The folder of images: each is a file that is called by its id."
    )
    images_type: Literal["qcow2", "raw"] = option(
        "qcow2", help="qcow2: a guest's disk is a layer over its image. raw: it is a whole copy."
    )
    count_other_guests: bool = option(
        True, help="Guests that others run on the host take of its memory, dedicated CPUs and PCI devices."
    )
    refresh_seconds: float = option(
        10.0, min=0.0, help="Seconds between two looks at the hypervisor, at least."
    )
    call_seconds: float = option(60.0, min=0.1, help="A look must end within this time.")


def libvirt_drivers(source: Source) -> MakeDriver:
    """Return a maker of libvirt drivers by the options of a source. Raises `OperatorError`."""
    bindings()
    options = source.read(LibvirtOptions)
    try:
        sets = CpuSets(
            _set("cpu_shared_set", options.cpu_shared_set),
            _set("cpu_dedicated_set", options.cpu_dedicated_set),
        )
        specs = tuple(read_device_spec(each) for each in options.device_spec)
    except UnusableOptions as error:
        raise OperatorError(f"[libvirt] {error}") from error
    fixed = {
        VCPU: options.cpu_allocation_ratio,
        MEMORY: options.ram_allocation_ratio,
        DISK: options.disk_allocation_ratio,
    }
    initial = {
        VCPU: options.initial_cpu_allocation_ratio,
        MEMORY: options.initial_ram_allocation_ratio,
        DISK: options.initial_disk_allocation_ratio,
    }

    def make(host: str, directory: Path) -> LibvirtDriver:
        folder = Path(options.instances_path) if options.instances_path else directory / "instances"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OperatorError(
                f"the folder of guests {folder} cannot be made: {why_no_directory(error)}"
            ) from error
        if options.instances_path_shared:
            try:
                give_id(folder)
            except OSError as error:
                raise OperatorError(
                    f"the folder of guests {folder} cannot be shared by hosts: {error.strerror or error}"
                ) from error
        of_driver = DriverOptions(
            disks=DiskOptions(
                folder.absolute(),
                Path(options.images_path) if options.images_path else None,
                options.images_type,
                options.instances_path_shared,
            ),
            virt_type=options.virt_type,
            machine=options.machine_type,
            cpu_mode=options.cpu_mode,
            cpu_sets=sets,
            reserved=Reserved(
                options.reserved_host_cpus, options.reserved_host_memory_mb, options.reserved_host_disk_gb
            ),
            ratios=Ratios({name: each for name, each in fixed.items() if each is not None}, initial),
            mdevs=MdevOptions(options.enabled_mdev_types, options.mdev_classes),
            device_specs=specs,
            counts_others=options.count_other_guests,
            refresh_seconds=options.refresh_seconds,
        )
        try:
            return LibvirtDriver(host, of_driver, LibvirtConnection(options.uri, options.call_seconds))
        except ComputeError as error:
            raise OperatorError(f"the driver libvirt cannot begin: {error}") from error

    return make


def _set(name: str, text: str | None) -> frozenset[int] | None:
    try:
        return None if text is None else range_set(text)
    except ValueError as error:
        raise UnusableOptions(f"{name} {text!r} is no set of CPUs: {error}") from error
