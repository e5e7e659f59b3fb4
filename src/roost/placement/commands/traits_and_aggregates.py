"""Commands that set the traits and the aggregates of a provider."""

from roost.ledger import Command, State
from roost.model.change import AggregatesChanged, TraitsChanged
from roost.placement.commands.names import AddTrait
from roost.placement.commands.providers import check_generation, raise_generation
from roost.placement.errors import BadRequest
from roost.placement.known_names import provider_row


class SetTraits(Command[int], frozen=True):
    """Replace all traits of a provider. Setting the present traits changes nothing.

    With ``add_custom`` unknown custom traits are created; else they are refused.
    """

    provider: str
    traits: frozenset[str]
    generation: int | None = None
    add_custom: bool = False

    def run(self, state: State) -> int:
        """Return the provider's generation. Raises `NotFound`, `ConcurrentUpdate`, `BadRequest`."""
        fleet = state.fleet
        row = provider_row(fleet, self.provider)
        check_generation(state, row, self.generation)
        unknown = sorted(self.traits.difference(fleet.traits))
        if self.add_custom:
            for name in unknown:
                AddTrait(name).run(state)
        elif unknown:
            raise BadRequest(f"No such trait {', '.join(unknown)}")
        before = fleet.traits_of(row)
        after = tuple(sorted(self.traits))
        if before != after:
            state.apply(TraitsChanged(self.provider, before, after))
            raise_generation(state, row)
        return fleet.generation.item(row)


class SetAggregates(Command[int], frozen=True):
    """Replace all aggregates of a provider.

    ``raises`` says whether the provider's generation is raised, as it is from microversion 1.19.
    """

    provider: str
    aggregates: frozenset[str]
    generation: int | None = None
    raises: bool = True

    def run(self, state: State) -> int:
        """Return the provider's generation. Raises `NotFound`, `ConcurrentUpdate`."""
        fleet = state.fleet
        row = provider_row(fleet, self.provider)
        check_generation(state, row, self.generation)
        before = fleet.aggregates_of(row)
        after = tuple(sorted(self.aggregates))
        if before != after:
            state.apply(AggregatesChanged(self.provider, before, after))
        if self.raises:
            raise_generation(state, row)
        return fleet.generation.item(row)
