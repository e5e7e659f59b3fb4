"""Limits of the inventories that agents may report: a stolen token cannot draw all requests to a host."""

from collections.abc import Collection, Mapping

from roost.agent.protocol.types import ProviderRefusal
from roost.model.inventory import Inventory
from roost.model.node import NodeReport, amounts_of
from roost.model.vocabulary import is_custom, standard_resource_classes
from roost.placement.interface import Placement
from roost.process.options import OptionStruct, option

Offer = Mapping[str, Inventory]
"""The inventories of one provider by resource class."""


def _totals(texts: Mapping[str, str]) -> Mapping[str, int]:
    totals: dict[str, int] = {}
    for name, text in texts.items():
        if not is_custom(name) and name not in standard_resource_classes():
            raise ValueError(f"[conductor] agent_total_limits: {name!r} is no name of a resource class")
        if not text.isascii() or not text.isdigit():
            raise ValueError(f"[conductor] agent_total_limits: {text!r} of {name} is no whole number")
        totals[name] = int(text)
    return totals


class OfferLimits(OptionStruct, frozen=True, group="conductor"):
    """The greatest allocation ratio of an inventory, and by resource class the greatest total of a tree."""

    ratio: float | None = option(
        None,
        name="agent_ratio_limit",
        min=0.0,
        help="The greatest allocation ratio of an inventory that the agents of this cell's hosts may offer. "
        "Without it they may offer any.",
    )
    totals: Mapping[str, int] = option(
        {},
        name="agent_total_limits",
        parse=_totals,
        help="By resource class, the greatest total that the agent of a host may offer on one node and its "
        "children, such as VCPU:512,MEMORY_MB:4194304. Classes that are not named have none.",
    )

    def excess(self, offered: Mapping[str, tuple[int, float]]) -> str | None:
        """Return why an offer exceeds the limits, None if not. ``offered``: class -> (total, ratio)."""
        for name, (total, ratio) in sorted(offered.items()):
            if self.ratio is not None and not ratio <= self.ratio:
                return (
                    f"the allocation ratio {ratio:g} of {name} is above {self.ratio:g}, the greatest that "
                    "[conductor] agent_ratio_limit allows"
                )
            if (most := self.totals.get(name)) is not None and total > most:
                return (
                    f"a total of {total} {name} is above {most}, the greatest of a tree that [conductor] "
                    "agent_total_limits allows"
                )
        return None

    def excess_of_report(self, report: NodeReport) -> str | None:
        """Return why the amounts of a node's report exceed the limits, None if they do not."""
        if self.ratio is None and not self.totals:
            return None
        amounts = amounts_of(report)
        return self.excess({name: (each.total, each.ratio) for name, each in amounts.items()})

    async def judge(
        self, placement: Placement, tree: Collection[str], new: Mapping[str, Offer]
    ) -> ProviderRefusal | None:
        """Judge new inventories of providers (uuid -> offer), together with the rest of their tree."""
        whole: dict[str, tuple[int, float]] = {}
        limited = {name for offer in new.values() for name in offer if name in self.totals}
        offers = [*new.values()]
        if limited:
            offers += [await placement.inventories(uuid) for uuid in sorted(tree) if uuid not in new]
        for number, offer in enumerate(offers):
            for name, inventory in offer.items():
                is_new = number < len(new)
                if not is_new and name not in limited:
                    continue
                total, ratio = whole.get(name, (0, 0.0))
                at = max(ratio, inventory.allocation_ratio) if is_new else ratio
                whole[name] = total + inventory.total, at
        excess = self.excess(whole)
        return None if excess is None else ProviderRefusal(excess)


NO_LIMITS = OfferLimits()
