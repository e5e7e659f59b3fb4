"""Refusals while placement is being filled: nodes report, and placement has no providers for them yet."""

from collections.abc import Iterator

import msgspec

from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.outcome import Outcome


def known_nodes(table: NodeTable) -> Iterator[str]:
    """Yield the root providers of all nodes that report."""
    return (node for node in table.nodes if table.index_of_node(node) is not None)


def being_filled(outcome: Outcome, missing: int, nodes: int) -> Outcome:
    """Return the outcome of a run without a host; its refusal names the nodes without provider."""
    if not missing:
        return outcome
    return msgspec.structs.replace(outcome, refusal=f"{outcome.refusal}; {filling(missing, nodes)}")


def filling(missing: int, nodes: int) -> str:
    """Return a text: so many of the nodes that report have no provider."""
    return f"placement is being filled: {missing} of {nodes} nodes that report have no provider there"
