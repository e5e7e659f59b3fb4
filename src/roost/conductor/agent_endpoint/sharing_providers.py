"""The sharing providers that serve trees of hosts, and the rule which of them a cell's agents may write."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from roost.agent.protocol.types import CreateProvider, MoveProvider, ProviderRefusal, ProviderWrite
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.interface import Placement, Provider


class JudgedWrite(NamedTuple):
    """The judgement on a write to a sharing provider. ``refusal``: why it is refused, None if it is not."""

    refusal: ProviderRefusal | None


class SharingProviders:
    """The sharing providers of a placement service.

    ``names``: the providers that agents may make and write. A host that shares a pool can change it for all
    others, so an operator names the pools.
    """

    def __init__(self, placement: Placement, names: Collection[str] = ()) -> None:
        self._placement = placement
        self._names = frozenset(names)

    async def serving(self, aggregates: Collection[str], wanted: Sequence[str]) -> list[Provider]:
        """Return the sharing providers in some aggregates, and the ``wanted`` ones that may be written."""
        found = await self._placement.sharing_providers(aggregates) if aggregates else []
        serving = {each.uuid: each for each in found if each.parent is None}
        for uuid in wanted:
            there = await self._placement.provider(uuid)
            if there is not None and self._may_be_written(there):
                serving[uuid] = there
        return list(serving.values())

    async def judge(self, write: ProviderWrite) -> JudgedWrite | None:
        """Judge a write outside of the host's tree; returns None if it is not to a sharing provider."""
        there = await self._placement.provider(write.uuid)
        names = set() if there is None else {there.name}
        if isinstance(write, CreateProvider | MoveProvider):
            if write.parent is not None:
                return None
            names.add(write.name)
        elif there is None:
            return None
        if there is not None and not self._may_be_written(there):
            shares = there.parent is None and SHARING_TRAIT in await self._placement.traits(there.uuid)
            if not shares:
                return None
        if not (refused := sorted(names - self._names)):
            return JudgedWrite(None)
        return JudgedWrite(
            ProviderRefusal(
                f"agents of the cell may not change the sharing provider {refused[0]}: the option "
                "[conductor] sharing_providers of the cell's conductor does not name it"
            )
        )

    def _may_be_written(self, provider: Provider) -> bool:
        return provider.parent is None and provider.name in self._names
