"""Assignments as the text of a column: JSON, NULL for none."""

import msgspec

from roost.ledger.errors import Damaged
from roost.model.assignment import Assignment

_decoder = msgspec.json.Decoder(Assignment)


def assignment_text(assignment: Assignment | None) -> str | None:
    """Encode an assignment."""
    return None if assignment is None else msgspec.json.encode(assignment).decode()


def assignment_from_text(consumer: str, text: str | None) -> Assignment | None:
    """Decode the assignment of a consumer. Raises: `Damaged` if the text is not one of an assignment."""
    try:
        return None if text is None else _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise Damaged(
            f"the assignment of consumer {consumer} cannot be read: {error}; 'roost db verify' tells all "
            "that is wrong"
        ) from error
