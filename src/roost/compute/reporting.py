"""The machine that brings placement in line with what a driver tells of a node."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from roost.agents.questions import ReadTree, WriteProviders
from roost.agents.types import (
    CreateProvider,
    MoveProvider,
    ProviderState,
    ProviderWrite,
    SessionKey,
    Written,
)
from roost.compute.applied import Applied, AppliedProvider
from roost.compute.driving import FillTree
from roost.compute.errors import BadProviderName
from roost.compute.keeping import KeepApplied
from roost.compute.merging import PlannedWrite, plan
from roost.compute.provider_tree import ProviderTree
from roost.compute.tree_provider import ToldProvider
from roost.machine import Ask, Log, Machine
from roost.model.text import is_storable
from roost.model.vocabulary import DISABLED_TRAIT, MAX_NAME

ATTEMPTS = 5
"""So often a tree is read and merged again in one report after others have changed it meanwhile."""


class Reported(NamedTuple):
    """What is applied after a report, and what placement refused; nothing if all is there.

    ``unchanged``: the tree as it was read, if nothing was to be written; None otherwise.
    """

    applied: Applied
    refusals: tuple[str, ...]
    unchanged: tuple[ProviderState, ...] | None


def report_providers(
    session: SessionKey,
    node: str,
    root: str,
    applied: Mapping[str, AppliedProvider],
    *,
    enabled: bool = True,
    read: tuple[ProviderState, ...] | None = None,
) -> Machine[Reported]:
    """Create, change, move and delete the providers of a node until placement has what the driver wants.

    ``root``: the uuid of the node's root provider, which has its name.
    ``enabled``: False adds the trait by which Nova marks a disabled service. ``read``: the tree as it was
    read not long ago; if the driver would change nothing of it, the cell is not asked.

    Asks ``cell``, ``driver`` and ``state``. A write that placement refuses is left out, and so is what
    follows from it; the next report tries it again. Raises what these services raise, and `BadProviderName`
    before anything is written.
    """
    now: Applied = dict(applied)
    refusals: tuple[str, ...] = ()
    unchanged: tuple[ProviderState, ...] | None = None
    for _ in range(ATTEMPTS + (read is not None)):
        there = read if read is not None else (yield from Ask("cell", ReadTree(session, root)).do())
        tree = ProviderTree.of(there)
        tree.put_root(node, root)
        tree = yield from Ask("driver", FillTree(tree, node)).do()
        if enabled:
            tree.remove_traits(root, DISABLED_TRAIT)
        else:
            tree.add_traits(root, DISABLED_TRAIT)
        for provider in tree.told():
            _check(provider)
        planned = plan(now, tree, there)
        settled = planned.changes_nothing(now)
        if read is not None:
            read = None
            if settled:
                unchanged = there
                break
            continue
        if planned.kept:
            names = sorted(state.name for state in there if state.uuid in planned.kept)
            yield from Log("providers that others made are kept", {"node": node, "providers": names}).do()
        if settled:
            unchanged = there
            break
        if planned.ahead != now:
            yield from Ask("state", KeepApplied(node, planned.ahead)).do()
        now, refusals, is_outdated = yield from _write(session, root, planned.writes, planned.before)
        if now != planned.ahead:
            yield from Ask("state", KeepApplied(node, now)).do()
        if not is_outdated:
            break
    return Reported(now, refusals, unchanged)


def _write(
    session: SessionKey, root: str, planned: Sequence[PlannedWrite], applied: Applied
) -> Machine[tuple[Applied, tuple[str, ...], bool]]:
    """Make writes. Returns what is applied, the refusals, and whether others have changed a provider."""
    now = dict(applied)
    refusals: list[str] = []
    left = list(planned)
    while left:
        writes = tuple(each.write for each in left if each.write is not None)
        written = Written(0)
        if writes:
            written = yield from Ask("cell", WriteProviders(session, root, writes)).do()
        done = written.done
        while left and (left[0].write is None or done):
            done -= left[0].write is not None
            left.pop(0).take(now)
        if left and written.refusal is not None:
            refusals.append(written.refusal.text)
            if written.refusal.conflict:
                return now, tuple(refusals), True
            left = _without_what_follows(left[0].write, left[1:])
    return now, tuple(refusals), False


def _without_what_follows(refused: ProviderWrite | None, left: Sequence[PlannedWrite]) -> list[PlannedWrite]:
    """The writes that can be made though one was refused: none to a provider that was not created."""
    if not isinstance(refused, CreateProvider):
        return list(left)
    missing = {refused.uuid}
    possible: list[PlannedWrite] = []
    for each in left:
        write = each.write
        if isinstance(write, CreateProvider | MoveProvider) and write.parent in missing:
            missing.add(write.uuid)
        elif each.provider not in missing:
            possible.append(each)
    return possible


def _check(provider: ToldProvider) -> None:
    for text in (provider.name, *(provider.aggregates or ())):
        if not is_storable(text, MAX_NAME):
            raise BadProviderName(f"a provider cannot be named or be in the aggregate {text!r}")
