"""Provider generations: a write checks and raises them."""

from roost.ledger import State
from roost.model.change import GenerationChanged
from roost.placement.errors import ConcurrentUpdate


def check_generation(state: State, row: int, expected: int | None) -> None:
    """Check that ``expected``, unless None, is the provider's generation. Raises `ConcurrentUpdate`."""
    current = state.fleet.generation.item(row)
    if expected is not None and expected != current:
        raise ConcurrentUpdate(
            f"resource provider generation conflict for provider {state.fleet.uuid(row)}: actual: {current}, "
            f"given: {expected}. Resource provider's generation already changed. Please update the "
            "generation and try again."
        )


def raise_generation(state: State, row: int) -> None:
    """Raise a provider's generation by one."""
    current = state.fleet.generation.item(row)
    state.apply(GenerationChanged(state.fleet.uuid(row), current, current + 1))
