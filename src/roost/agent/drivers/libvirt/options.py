"""The options of hosts with libvirt, in group ``libvirt``."""

from pathlib import Path

from oslo_config import cfg

from roost.agent.drivers.driver_loader import MakeDriver
from roost.agent.drivers.libvirt.connection import LibvirtConnection, bindings
from roost.agent.drivers.libvirt.driver import LibvirtDriver
from roost.agent.drivers.libvirt.elements import range_set
from roost.agent.drivers.libvirt.guest_options import DriverOptions
from roost.agent.drivers.libvirt.images import DiskOptions
from roost.agent.drivers.libvirt.inventory import DISK, MEMORY, VCPU, CpuSets, MdevOptions, Ratios, Reserved
from roost.agent.drivers.libvirt.pci import read_device_spec
from roost.agent.drivers.libvirt.view import AUTO
from roost.agent.errors import ComputeError, UnusableOptions
from roost.model.errors import OperatorError
from roost.process.durable_file import why_no_directory
from roost.process.option_source import Source

GROUP = "libvirt"

OPTIONS = [
    cfg.StrOpt("uri", default="qemu:///system", help="The hypervisor, as libvirt names it."),
    cfg.StrOpt(
        "virt_type",
        default=AUTO,
        help="The domain type of guests, such as kvm or qemu. auto: kvm where the host has it, else the "
        "first that it tells.",
    ),
    cfg.StrOpt("machine_type", help="The machine type of guests. Without it that of the hypervisor."),
    cfg.StrOpt(
        "cpu_mode",
        choices=("host-model", "host-passthrough", "maximum"),
        help="The CPU of guests. Without it host-model with kvm, and that of the hypervisor else.",
    ),
    cfg.StrOpt("cpu_shared_set", help="CPUs that vCPUs float over, as 0-3,8. VCPU counts them."),
    cfg.StrOpt(
        "cpu_dedicated_set",
        help="CPUs that vCPUs are pinned to. PCPU counts them. Without this and cpu_shared_set all are "
        "shared.",
    ),
    cfg.IntOpt(
        "reserved_host_cpus",
        deprecated_group="DEFAULT",
        default=0,
        min=0,
        help="VCPU that guests do not get.",
    ),
    cfg.IntOpt(
        "reserved_host_memory_mb",
        deprecated_group="DEFAULT",
        default=512,
        min=0,
        help="MEMORY_MB that guests do not get.",
    ),
    cfg.IntOpt("reserved_host_disk_gb", default=0, min=0, help="DISK_GB that guests do not get."),
    cfg.FloatOpt(
        "cpu_allocation_ratio",
        deprecated_group="DEFAULT",
        min=0.0001,
        help="The ratio of VCPU, whatever placement has.",
    ),
    cfg.FloatOpt("ram_allocation_ratio", deprecated_group="DEFAULT", min=0.0001, help="That of MEMORY_MB."),
    cfg.FloatOpt("disk_allocation_ratio", deprecated_group="DEFAULT", min=0.0001, help="That of DISK_GB."),
    cfg.FloatOpt(
        "initial_cpu_allocation_ratio",
        deprecated_group="DEFAULT",
        default=4.0,
        min=0.0001,
        help="The ratio of VCPU until placement has another.",
    ),
    cfg.FloatOpt(
        "initial_ram_allocation_ratio",
        deprecated_group="DEFAULT",
        default=1.0,
        min=0.0001,
        help="That of MEMORY_MB.",
    ),
    cfg.FloatOpt(
        "initial_disk_allocation_ratio",
        deprecated_group="DEFAULT",
        default=1.0,
        min=0.0001,
        help="That of DISK_GB.",
    ),
    cfg.ListOpt(
        "enabled_mdev_types",
        default=[],
        help="Types of mediated devices that guests may have. A physical device makes the first that it can.",
    ),
    cfg.DictOpt(
        "mdev_classes",
        default={},
        help="Resource classes of types, as nvidia-36:CUSTOM_VGPU_LARGE. The others are VGPU.",
    ),
    cfg.MultiStrOpt(
        "device_spec",
        default=[],
        help="PCI devices that guests may have, each time a JSON object with vendor_id, product_id and "
        "address, which may have * in it; what else it says is told of the devices, such as "
        "physical_network.",
    ),
    cfg.StrOpt(
        "instances_path",
        deprecated_group="DEFAULT",
        help="The folder of the guests' disks; DISK_GB is the size of its file system. Without it instances/ "
        "in the state directory.",
    ),
    cfg.StrOpt("images_path", help="The folder of images: each is a file that is called by its id."),
    cfg.StrOpt(
        "images_type",
        default="qcow2",
        choices=("qcow2", "raw"),
        help="qcow2: a guest's disk is a layer over its image. raw: it is a whole copy.",
    ),
    cfg.BoolOpt(
        "count_other_guests",
        default=True,
        help="Guests that others run on the host take of its memory, dedicated CPUs and PCI devices.",
    ),
    cfg.FloatOpt(
        "refresh_seconds",
        default=10.0,
        min=0.0,
        help="Seconds between two looks at the hypervisor, at least.",
    ),
    cfg.FloatOpt("call_seconds", default=60.0, min=0.1, help="A look must end within this time."),
]


def libvirt_drivers(source: Source) -> MakeDriver:
    """Return a maker of libvirt drivers by the options of a source. Raises `OperatorError`."""
    bindings()
    conf = source.open()
    source.register(conf, GROUP, OPTIONS)
    group = conf[GROUP]
    try:
        sets = CpuSets(_set(group, "cpu_shared_set"), _set(group, "cpu_dedicated_set"))
        specs = tuple(read_device_spec(each) for each in group.device_spec)
    except UnusableOptions as error:
        raise OperatorError(f"[libvirt] {error}") from error
    by_class = {VCPU: "cpu", MEMORY: "ram", DISK: "disk"}
    fixed = {name: getattr(group, f"{each}_allocation_ratio") for name, each in by_class.items()}
    initial = {name: getattr(group, f"initial_{each}_allocation_ratio") for name, each in by_class.items()}

    def make(host: str, directory: Path) -> LibvirtDriver:
        folder = Path(group.instances_path) if group.instances_path else directory / "instances"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OperatorError(
                f"the folder of guests {folder} cannot be made: {why_no_directory(error)}"
            ) from error
        options = DriverOptions(
            disks=DiskOptions(
                folder.absolute(), Path(group.images_path) if group.images_path else None, group.images_type
            ),
            virt_type=group.virt_type,
            machine=group.machine_type,
            cpu_mode=group.cpu_mode,
            cpu_sets=sets,
            reserved=Reserved(
                group.reserved_host_cpus, group.reserved_host_memory_mb, group.reserved_host_disk_gb
            ),
            ratios=Ratios({name: each for name, each in fixed.items() if each is not None}, initial),
            mdevs=MdevOptions(tuple(group.enabled_mdev_types), dict(group.mdev_classes)),
            device_specs=specs,
            counts_others=group.count_other_guests,
            refresh_seconds=group.refresh_seconds,
        )
        try:
            return LibvirtDriver(host, options, LibvirtConnection(group.uri, group.call_seconds))
        except ComputeError as error:
            raise OperatorError(f"the driver libvirt cannot begin: {error}") from error

    return make


def _set(group: cfg.ConfigOpts, name: str) -> frozenset[int] | None:
    text = getattr(group, name)
    try:
        return None if text is None else range_set(text)
    except ValueError as error:
        raise UnusableOptions(f"{name} {text!r} is no set of CPUs: {error}") from error
