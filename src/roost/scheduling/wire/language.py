"""The language that a request spec is in."""

from collections.abc import Mapping
from typing import Any

from roost.scheduler.nodes import NodeTable
from roost.scheduling.wire.nova_language import NovaLanguage
from roost.scheduling.wire.nova_object import is_nova_object
from roost.scheduling.wire.roost_spec import RoostLanguage
from roost.scheduling.wire.spoken import Language


def language_of(spec: Mapping[str, Any], table: NodeTable) -> Language:
    """The language of a request spec. ``table`` has the names of nodes."""
    return NovaLanguage(table) if is_nova_object(spec) else RoostLanguage()
