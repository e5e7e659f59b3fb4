"""TOML files of operators, as values of a type."""

import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from roost.model.wrong_value import field_names, wrong_value

T = TypeVar("T")


def read_toml(path: Path, form: type[T]) -> T:
    """Read a file as a value of a type.

    Raises:
        ValueError: the file is not TOML in UTF-8, or has a wrong value; the text names its place.
        OSError: the file cannot be read.
    """
    document = tomllib.loads(path.read_text())
    try:
        return msgspec.convert(document, form)
    except msgspec.ValidationError as error:
        text = wrong_value(error, document, root="the file", known=lambda: field_names(form))
        raise ValueError(text) from error
