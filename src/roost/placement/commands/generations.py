"""Provider generations: checked before a write, raised by it."""

from roost.fleet import UnknownProvider
from roost.ledger import State
from roost.model.change import GenerationChanged
from roost.placement.errors import ConcurrentUpdate, NotFound


def provider_row(state: State, uuid: str) -> int:
    """The row of the provider addressed. Raises `NotFound`."""
    try:
        return state.fleet.row(uuid)
    except UnknownProvider:
        raise NotFound(f"No resource provider with uuid {uuid} found") from None


def check_generation(state: State, row: int, expected: int | None) -> None:
    """Raise `ConcurrentUpdate` unless ``expected`` is the provider's generation; None is not checked."""
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
