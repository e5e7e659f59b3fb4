"""All policy rules of all services, with their defaults and the operations of each."""

from collections.abc import Iterator
from typing import Final

from oslo_policy.policy import RuleDefault

from document_site.api_services import RuleSet, all_operations, rule_sets
from document_site.markdown import SitePage, code, definitions, heading, label_of
from roost.web.operation import OPEN, Operation
from roost.web.policy import Rule

PATH = "reference/policies.md"

_ALWAYS = "Decides about"
_ALL_PROJECTS = "For all projects:"
_SOME_BODIES = "With some bodies:"
_WHEN: Final = (_ALWAYS, _ALL_PROJECTS, _SOME_BODIES)

_OPENING = """\
A rule says who may use an operation. Each has its check without a policy file here, in the language of
oslo.policy; a file `policy.yaml` may have others
([configuration](../configuration.md#from-an-existing-placementconf)).

*For all projects*: the rule is needed beside the operation's own where a request reaches resources of other
projects than its token's. *With some bodies*: it is needed for what only some requests ask for.
"""


def policy_pages() -> Iterator[SitePage]:
    """Yield the page of all policy rules."""
    yield SitePage(PATH, "\n".join((heading(1, "Policies"), _OPENING, *map(_section, rule_sets()))))


def links_to_rules(rule: Rule) -> str:
    """Return links to the rules of an operation."""
    of_all = "" if rule.all_projects is None else f", for all projects {_link(rule.all_projects)}"
    return f"{_link(rule.name)}{of_all}"


def operations_of(rule: str) -> dict[str, list[tuple[Operation, str | None]]]:
    """Return the operations that a rule decides about, with their labels, by when it does."""
    found: dict[str, list[tuple[Operation, str | None]]] = {each: [] for each in _WHEN}
    for operation, label in all_operations():
        if operation.rule is OPEN:
            continue
        if operation.rule.name == rule:
            found[_ALWAYS].append((operation, label))
        elif operation.rule.all_projects == rule:
            found[_ALL_PROJECTS].append((operation, label))
        elif operation.rule.of_body is not None and rule.startswith(f"{operation.rule.name}:"):
            found[_SOME_BODIES].append((operation, label))
    return found


def _section(rules: RuleSet) -> str:
    described = ((_anchored(rule), f"{code(rule.check_str)}. {_use(rule, rules)}") for rule in rules.rules)
    return "\n".join((heading(2, rules.title), definitions(described)))


def _anchored(rule: RuleDefault) -> str:
    return f"{code(rule.name)}{{#{_label(rule.name)}}}"


def _use(rule: RuleDefault, rules: RuleSet) -> str:
    """Return the sentence about the operations of a rule, or the rules that use it."""
    parts = [
        f"{when} {', '.join(map(_shown, each))}." for when, each in operations_of(rule.name).items() if each
    ]
    if parts:
        return " ".join(parts)
    users = [each for each in rules.rules if f"rule:{rule.name}" in each.check_str]
    return "Used by other rules." if users else "Not used by the defaults."


def _shown(operation: tuple[Operation, str | None]) -> str:
    (row, label) = operation
    shown = code(f"{row.method} {row.path}")
    return shown if label is None else f"[{shown}](#{label})"


def _label(name: str) -> str:
    return label_of("rule", name)


def _link(name: str) -> str:
    return f"[{code(name)}](#{_label(name)})"
