"""Brings placement in line with the providers that a driver reports of a node."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from roost.agent.agent_context import AgentContext
from roost.agent.errors import BadProviderName, ReshapeNeeded, ReshapePostponed, ReshapeRefused
from roost.agent.protocol.questions import ReadTree, WriteProviders
from roost.agent.protocol.types import (
    CreateProvider,
    MovedClaim,
    MoveProvider,
    ProviderState,
    ProviderWrite,
    SessionKey,
    Written,
)
from roost.agent.provider_merge import Applied, AppliedProvider, Plan, PlannedWrite, plan
from roost.agent.provider_tree import ProviderTree
from roost.agent.tree_provider import DesiredProvider
from roost.agent.tree_reshape import (
    before_reshape,
    changes_anything,
    move_claims,
    plan_reshape,
    reshape,
    with_moved_classes,
)
from roost.model.text import is_storable
from roost.model.vocabulary import DISABLED_TRAIT, MAX_NAME

ATTEMPTS = 5
"""Times that one report reads and merges a tree, if others change it meanwhile."""


class Reported(NamedTuple):
    """The applied providers after a report, and the refusals of placement, if there were any.

    ``unchanged``: the tree as it was read, if nothing was to be written; None otherwise.
    """

    applied: Applied
    refusals: tuple[str, ...]
    unchanged: tuple[ProviderState, ...] | None


async def report_providers(
    context: AgentContext,
    session: SessionKey,
    node: str,
    root: str,
    applied: Mapping[str, AppliedProvider],
    *,
    enabled: bool | None = True,
    read: tuple[ProviderState, ...] | None = None,
    may_reshape: Callable[[], bool] | None = None,
) -> Reported:
    """Create, change, move and delete the providers of a node until placement has what the driver wants.

    ``root``: the uuid of the node's root provider, which has its name. ``enabled``: False adds the trait by
    which Nova marks a disabled service, True removes it, None leaves it as it is. ``read``: the tree as read
    shortly before; if the driver changes nothing in it, the cell is not asked. ``may_reshape``: called when
    the driver wants to move allocations, returns False while builds are under way. None: no reshape is
    allowed.

    Asks ``cell``, ``driver`` and ``state``. A write that placement refuses is left out, with the writes that
    depend on it; the next report tries it again. Raises what these services raise, and `BadProviderName`
    before anything is written. Raises `ReshapeNeeded` if the driver may not reshape now, `ReshapePostponed`,
    and `ReshapeRefused` with the node as it was.
    """
    now: Applied = dict(applied)
    refusals: tuple[str, ...] = ()
    unchanged: tuple[ProviderState, ...] | None = None
    is_unfinished = False
    sharing: tuple[str, ...] = ()
    for _ in range(ATTEMPTS + (read is not None)):
        there = read if read is not None else await context.cell.ask(ReadTree(session, root, sharing))
        moved: dict[str, MovedClaim] | None = None
        try:
            tree = await context.driver.fill_tree(_tree(there, node, root), node)
        except ReshapeNeeded as error:
            needed = error
            if may_reshape is not None and not may_reshape():
                raise ReshapePostponed("builds that are under way end before the node is reshaped") from None
            if read is not None:
                read = None
                continue
            tree, moved = await move_claims(context, session, node, root, _tree(there, node, root))
        is_marked = any(each.uuid == root and DISABLED_TRAIT in each.traits for each in there)
        if enabled or (enabled is None and not is_marked):
            tree.remove_traits(root, DISABLED_TRAIT)
        else:
            tree.add_traits(root, DISABLED_TRAIT)
        for provider in tree.desired():
            _check(provider)
        if unread := _unread_roots(tree, there, root, sharing):
            # A sharing provider of another host is not in this tree's answer until it serves the tree.
            sharing, read = (*sharing, *unread), None
            continue
        planned = plan(now if moved is None else with_moved_classes(now, tree, there), tree, there)
        is_unfinished = False
        if moved is not None:
            # Sharing providers are not part of the reshape; the report after it writes them.
            further = {each.uuid for each in there if each.parent is None}
            further |= {each.uuid for each in tree.desired() if each.parent is None}
            wanted = _Reshaping(
                planned.without(further - {root}), moved, there, now, None if may_reshape else needed
            )
            outcome = await _reshape(context, session, node, root, wanted)
            if outcome is not None:
                now, is_unfinished = outcome
                continue
        settled = planned.changes_nothing(now)
        if read is not None:
            read = None
            if settled:
                unchanged = there
                break
            continue
        if planned.kept:
            names = sorted(state.name for state in there if state.uuid in planned.kept)
            context.log("providers that others made are kept", {"node": node, "providers": names})
        if settled:
            unchanged = there
            break
        if planned.ahead != now:
            await context.state.keep_applied(node, planned.ahead)
        now, refusals, is_outdated = await _write(context, session, root, planned.writes, planned.before)
        if now != planned.ahead:
            await context.state.keep_applied(node, now)
        if not is_outdated:
            break
    if is_unfinished:
        raise ReshapeRefused(f"others have changed the tree or its claims {ATTEMPTS} times meanwhile")
    return Reported(now, refusals, unchanged)


class _Reshaping(NamedTuple):
    """The reshape that a driver wants: planned writes and moved claims, with the tree as it is.

    ``applied``: the applied providers before it. ``too_late``: raised instead of a change, if not None.
    """

    planned: Plan
    moved: dict[str, MovedClaim]
    there: tuple[ProviderState, ...]
    applied: Applied
    too_late: ReshapeNeeded | None


async def _reshape(
    context: AgentContext, session: SessionKey, node: str, root: str, wanted: _Reshaping
) -> tuple[Applied, bool] | None:
    """Make one step of a reshape: the writes that come before it, or the reshape itself.

    Returns the applied providers afterwards, and whether the tree is still to be reshaped. None if nothing
    moves: then an ordinary report follows. Raises `ReshapeRefused`.
    """
    planned, moved, there, applied, too_late = wanted
    if first := before_reshape(planned):
        if too_late is not None:
            raise too_late
        await context.state.keep_applied(node, planned.ahead)
        now, refusals, is_outdated = await _write(context, session, root, first, planned.before)
        await context.state.keep_applied(node, now)
        if refusals and not is_outdated:
            raise ReshapeRefused("; ".join(refusals))
        return now, True
    reshaping = plan_reshape(planned, there, root)
    if not moved and not changes_anything(reshaping, there):
        return None
    if too_late is not None:
        raise too_late
    after = await reshape(context, session, node, root, reshaping, moved, planned.before, planned.ahead)
    return (applied, True) if after is None else (after, False)


def _tree(there: Sequence[ProviderState], node: str, root: str) -> ProviderTree:
    """Return the tree that a driver gets."""
    tree = ProviderTree.of(there)
    tree.put_root(node, root)
    return tree


def _unread_roots(
    tree: ProviderTree, there: Sequence[ProviderState], root: str, asked: Sequence[str]
) -> list[str]:
    """Return the roots beside the node's that the driver wants, and that were not read yet."""
    known = {each.uuid for each in there} | {root, *asked}
    return [each.uuid for each in tree.desired() if each.parent is None and each.uuid not in known]


async def _write(
    context: AgentContext, session: SessionKey, root: str, planned: Sequence[PlannedWrite], applied: Applied
) -> tuple[Applied, tuple[str, ...], bool]:
    """Make writes. Returns the applied providers, the refusals, and whether others changed a provider."""
    now = dict(applied)
    refusals: list[str] = []
    left = list(planned)
    while left:
        writes = tuple(each.write for each in left if each.write is not None)
        written = Written(0)
        if writes:
            written = await context.cell.ask(WriteProviders(session, root, writes))
        done = written.done
        while left and (left[0].write is None or done):
            done -= left[0].write is not None
            left.pop(0).take(now)
        if left and written.refusal is not None:
            if written.refusal.text not in refusals:
                refusals.append(written.refusal.text)
            if written.refusal.conflict:
                return now, tuple(refusals), True
            instead = [] if left[0].otherwise is None else [left[0].otherwise]
            left = [*instead, *_without_what_follows(left[0].write, left[1:])]
    return now, tuple(refusals), False


def _without_what_follows(refused: ProviderWrite | None, left: Sequence[PlannedWrite]) -> list[PlannedWrite]:
    """Return the writes that are possible after a refusal: none to a provider that was not created."""
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


def _check(provider: DesiredProvider) -> None:
    for text in (provider.name, *(provider.aggregates or ())):
        if not is_storable(text, MAX_NAME):
            raise BadProviderName(f"a provider cannot be named or be in the aggregate {text!r}")
