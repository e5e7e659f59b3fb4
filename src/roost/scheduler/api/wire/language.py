"""The language that a request spec is in."""

from collections.abc import Mapping
from typing import Any

from roost.scheduler.api.wire.nova_language import NovaLanguage
from roost.scheduler.api.wire.nova_object import is_nova_object
from roost.scheduler.api.wire.roost_spec import RoostLanguage
from roost.scheduler.api.wire.spoken import Language
from roost.scheduler.nodes.table import NodeTable


def language_of(spec: Mapping[str, Any], table: NodeTable) -> Language:
    """Return the language of a request spec. ``table`` has the names of nodes."""
    return NovaLanguage(table) if is_nova_object(spec) else RoostLanguage()
