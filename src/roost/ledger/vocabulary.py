"""The command that registers the standard resource classes and traits, and the choice of new ids."""

from roost.ledger.state import Command, State
from roost.model.change import ResourceClassChanged, TraitChanged
from roost.model.vocabulary import standard_resource_classes, standard_traits

FIRST_CUSTOM_CLASS = 10_000
"""The first id of custom resource classes, so that new standard classes have room below. Source: upstream."""


class RegisterStandardNames(Command[None], frozen=True):
    """Adds the standard names of the installed libraries that the ledger lacks."""

    def run(self, state: State) -> None:
        known = state.fleet.resource_classes
        for number, name in enumerate(standard_resource_classes()):
            if name not in known:
                state.apply(ResourceClassChanged(name, None, number))
        for name in standard_traits():
            if name not in state.fleet.traits:
                state.apply(TraitChanged(name, None, free_trait_id(state)))


def free_class_id(state: State) -> int:
    """Return the id of the next custom resource class."""
    return max([FIRST_CUSTOM_CLASS - 1, *state.fleet.resource_classes.values()]) + 1


def free_trait_id(state: State) -> int:
    """Return the id of the next trait."""
    return max([0, *state.fleet.traits.values()]) + 1
