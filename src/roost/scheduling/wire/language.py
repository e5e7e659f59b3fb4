"""The language that a request spec is in."""

from collections.abc import Mapping
from typing import Any

from roost.scheduling.wire.roost_spec import RoostLanguage
from roost.scheduling.wire.spoken import Language


def language_of(spec: Mapping[str, Any]) -> Language:
    """The language of a request spec."""
    return RoostLanguage()
