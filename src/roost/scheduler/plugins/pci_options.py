"""The options of PCI devices, under Nova's names and in Nova's sections."""

from collections.abc import Sequence

from roost.fleet.hardware.pci_aliases import PciAlias, check_aliases, merged_aliases
from roost.process.options import OptionStruct, option
from roost.scheduler.plugins.plugin_options import FILTER_SCHEDULER


def _aliases(texts: Sequence[str]) -> dict[str, PciAlias]:
    try:
        return merged_aliases(texts)
    except ValueError as error:
        raise ValueError(f"alias: {error}") from error


class PciOptions(OptionStruct, frozen=True, group="pci"):
    """Options of PCI devices. ``aliases``: PCI aliases by name."""

    aliases: dict[str, PciAlias] = option(
        (),
        name="alias",
        parse=_aliases,
        multi=True,
        help="A name for PCI devices, which flavors ask for by the extra spec "
        "pci_passthrough:alias=NAME:COUNT. A JSON object with name, vendor_id, product_id, device_type "
        "(type-PCI, type-PF or type-VF), numa_policy (required, preferred, legacy or socket), "
        "live_migratable, resource_class and traits. Objects with the same name are alternatives.",
    )
    in_placement: bool = option(
        False,
        group=FILTER_SCHEDULER,
        name="pci_in_placement",
        help="The devices of a flavor's aliases are asked of placement too. For hosts that report PCI "
        "devices as resource providers.",
    )

    def __post_init__(self) -> None:
        try:
            check_aliases(self.aliases, in_placement=self.in_placement)
        except ValueError as error:
            raise ValueError(f"alias: {error}") from error
