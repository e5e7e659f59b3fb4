"""The reason of a refusal in one sentence, for the operator and for the user."""

from collections.abc import Sequence

from roost.fleet.columns import Bools
from roost.fleet.constraint import TOGETHER, Constraint
from roost.model.reasons import Miss, Relaxation
from roost.scheduler.explain.misses import nearest_removed
from roost.scheduler.explain.phrases import listed, met_constraint, negated, singular
from roost.scheduler.explain.snapshot import Condition
from roost.scheduler.explain.survey import Survey

MOST_NAMED = 3
"""Conditions that the sentence names as met; further ones of a long request are left out."""


def sentences(
    survey: Survey, misses: Sequence[Miss], placed: int, wanted: int, refusal: str
) -> tuple[str, str]:
    """Return the sentence with names and numbers of hosts, and the one without, for the survey's fleet.

    ``refusal``: the plain reason of the run, for when hosts are left that were not tried.
    """
    first = f"only {placed} of {wanted} instances fit: " if placed else ""
    known = int(survey.is_host.sum())
    if not known:
        return first + _without_hosts(survey), first + "no host is there"
    binding, before = _binding(survey)
    if binding is None:
        return refusal, first + "a limit of the scheduler was met before all hosts were tried"
    words = binding.words
    met = [each.words for each, _ in before]
    own = next((each for each in misses if each.name == binding.name and each.kind == binding.kind), None)
    closest = own or (misses[0] if misses else nearest_removed(survey, binding))
    most = "" if own is not None else _most(survey, binding, before)
    n = before[-1][1] if met else known
    if met:
        named = met[-MOST_NAMED:]
        more = " (and more)" if len(met) > MOST_NAMED else ""
        verbs = listed(named if n > 1 else list(map(singular, named)))
        text = f"{n} of {known} hosts {verbs}{more}; "
        public_names = [each.public for each, _ in before][-MOST_NAMED:]
        public = f"no host that {listed(list(map(singular, public_names)))} {singular(binding.public)}"
    else:
        text, public = "", f"no host {singular(binding.public)}"
    if n == 1:
        one = "that one" if met else "the only host known"
        # The closest host that only this condition keeps from the request must be that one.
        text += f"{one} {negated(words)}{most}" if own is None else f"{one}, {own.host}, {own.text}"
        closest = None if own is not None else closest
    else:
        text += f"none of {'these' if met else f'{known} hosts'} {singular(words)}{most}"
    if closest is not None:
        text += f"; the closest, {closest.host}, {closest.text}"
    missing = survey.hosts - known
    if missing:
        text += f"; {missing} of {survey.hosts} hosts that report have no provider in placement"
    return first + text, first + public


def _without_hosts(survey: Survey) -> str:
    if not survey.hosts:
        return "no host is known"
    number = survey.hosts
    return f"placement is being filled: {number} of {number} hosts that report have no provider there"


def _binding(survey: Survey) -> tuple[Condition | None, list[tuple[Condition, int]]]:
    """Return the condition that leaves no host, and those before it that remove hosts, each with how many
    remain.

    Unlike in the funnel, amounts come after the query's other conditions: an amount is what can be changed.
    """
    conditions = [each for each in survey.conditions if each.kind == "query"]
    conditions.sort(key=_order)
    left: Bools = survey.is_host
    before: list[tuple[Condition, int]] = []
    for each in conditions:
        if each.failing is None:
            continue
        after = left & (~each.failing | survey.offered)
        if not after.any():
            return each, before
        if int(after.sum()) < int(left.sum()):
            before.append((each, int(after.sum())))
        left = after
    if not (left & survey.offered).any():
        whole = [each for each in conditions if each.failing is None]
        return (whole[-1] if whole else _together(left)), before
    if int((left & survey.offered).sum()) < int(left.sum()):
        before.append((_together(left), int((left & survey.offered).sum())))
    left = left & survey.offered
    for each in survey.conditions:
        if each.kind == "query":
            continue
        after = left & ~each.removed
        if not after.any():
            return each, before
        if int(after.sum()) < int(left.sum()):
            before.append((each, int(after.sum())))
        left = after
    return None, before


def _together(removed: Bools) -> Condition:
    """Return the condition that all constraints are met at once."""
    constraint = Constraint(None, TOGETHER)
    words = met_constraint(constraint, in_trees=True)
    return Condition(kind="query", name=str(constraint), words=words, subject=constraint, removed=removed)


def _most(survey: Survey, binding: Condition, before: Sequence[tuple[Condition, int]]) -> str:
    """Return in words the host that has most of a scarce amount, where it lacks something else too."""
    subject = binding.subject
    if not isinstance(subject, Constraint) or not subject.is_amount:
        return ""
    left: Bools = survey.is_host
    for each, _ in before:
        if each.failing is not None:
            left = left & ~each.failing
    found = survey.trees.best(subject, left)
    return "" if found is None else f"; the most, on {survey.name(found[0])}, is {found[1]}"


def _order(condition: Condition) -> int:
    subject = condition.subject
    if not isinstance(subject, Constraint) or condition.failing is None:
        return 2
    return int(subject.is_amount)


def way_out(relaxations: Sequence[Relaxation]) -> str:
    """Return the end of the sentence: what may be changed. Of single changes one that the user can make."""
    mine = user_way_out(relaxations)
    pair = next((each for each in relaxations if each.kind == "pair"), None)
    if mine or pair is None:
        return mine
    first, second = pair.parts
    return f"; no single change works, both of these do: {_with(first)}, and {_with(second)}"


def user_way_out(relaxations: Sequence[Relaxation]) -> str:
    """Return the end of the sentence for the user: what may be changed, without names of hosts or filters."""
    mine = next((each for each in relaxations if each.kind in _SAID), None)
    if mine is not None:
        return f"; it fits {_with(mine)}"
    pairs = [each.parts for each in relaxations if each.kind == "pair"]
    pair = next((parts for parts in pairs if all(each.kind in _SAID for each in parts)), None)
    if pair is None:
        return ""
    first, second = pair
    return f"; no single change works, both of these do: {_with(first)}, and {_with(second)}"


_SAID = ("amount", "group", "devices", "cells")


def _with(relaxation: Relaxation) -> str:
    text = relaxation.text
    return text if text.startswith(("with ", "without ")) else f"with {text}"
