"""The options of PCI devices, under Nova's names and in Nova's sections."""

import msgspec
from oslo_config import cfg

from roost.fleet.hardware.pci_aliases import PciAlias, aliases_from
from roost.scheduler.errors import BadOptions
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER


class PciOptions(msgspec.Struct, frozen=True):
    """Options of PCI devices.

    ``aliases``: PCI aliases by name. ``in_placement``: queries ask placement for the devices of aliases too.
    """

    aliases: dict[str, PciAlias] = {}
    in_placement: bool = False


OPTIONS: dict[str, list[cfg.Opt]] = {
    "pci": [
        cfg.MultiStrOpt(
            "alias",
            default=[],
            help="A name for PCI devices, which flavors ask for by the extra spec "
            "pci_passthrough:alias=NAME:COUNT. A JSON object with name, vendor_id, product_id, device_type "
            "(type-PCI, type-PF or type-VF), numa_policy (required, preferred, legacy or socket), "
            "live_migratable, resource_class and traits. Objects with the same name are alternatives.",
        ),
    ],
    FILTER_SCHEDULER: [
        cfg.BoolOpt(
            "pci_in_placement",
            default=False,
            help="The devices of a flavor's aliases are asked of placement too. For hosts that report PCI "
            "devices as resource providers.",
        ),
    ],
}


def pci_options_from(conf: cfg.ConfigOpts) -> PciOptions:
    """Read the options from a configuration.

    Raises:
        BadOptions: an alias is invalid.
    """
    for group, options in OPTIONS.items():
        conf.register_opts(options, group=group)
    try:
        in_placement = conf[FILTER_SCHEDULER].pci_in_placement
        return PciOptions(aliases_from(conf.pci.alias, in_placement=in_placement), in_placement)
    except (cfg.ConfigFileValueError, ValueError) as error:
        raise BadOptions(f"options [pci]: alias: {error}") from error
