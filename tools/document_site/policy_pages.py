"""All policy rules of all services, with their defaults and the operations of each."""

from collections.abc import Iterator

from oslo_policy.policy import RuleDefault

from document_site.api_services import RuleSet, all_operations, rule_sets
from document_site.markdown import SitePage, code, definitions, heading, label_of
from roost.web.operation import OPEN, Operation
from roost.web.policy import Rule

PATH = "reference/policies.md"

_OPENING = """\
A rule says who may use an operation. Each has its check without a policy file here, in the language of
oslo.policy; a file `policy.yaml` may have others
([configuration](../configuration.md#from-an-existing-placementconf)).

A rule that decides *for all projects* is needed beside the operation's own where a request reaches resources
of other projects than its token's. One that decides *with some bodies* is needed for what only some requests
have.
"""


def policy_pages() -> Iterator[SitePage]:
    """Yield the page of all policy rules."""
    yield SitePage(PATH, "\n".join((heading(1, "Policies"), _OPENING, *map(_section, rule_sets()))))


def links_to_rules(rule: Rule) -> str:
    """Return links to the rules of an operation."""
    of_all = "" if rule.all_projects is None else f", for all projects {_link(rule.all_projects)}"
    return f"{_link(rule.name)}{of_all}"


def operations_of(rule: str) -> Iterator[tuple[Operation, str | None, str]]:
    """Yield the operations that a rule decides about, each with its label and when the rule does."""
    for operation, label in all_operations():
        if operation.rule is OPEN:
            continue
        if operation.rule.name == rule:
            yield operation, label, ""
        elif operation.rule.all_projects == rule:
            yield operation, label, " for all projects"
        elif operation.rule.of_body is not None and rule.startswith(f"{operation.rule.name}:"):
            yield operation, label, " with some bodies"


def _section(rules: RuleSet) -> str:
    described = ((_anchored(rule), f"{code(rule.check_str)}. {_use(rule, rules)}") for rule in rules.rules)
    return "\n".join((heading(2, rules.title), definitions(described)))


def _anchored(rule: RuleDefault) -> str:
    return f"{code(rule.name)}{{#{_label(rule.name)}}}"


def _use(rule: RuleDefault, rules: RuleSet) -> str:
    """Return the sentence about the operations of a rule, or the rules that use it."""
    operations = []
    for operation, label, when in operations_of(rule.name):
        shown = code(f"{operation.method} {operation.path}")
        operations.append((shown if label is None else f"[{shown}](#{label})") + when)
    if operations:
        return f"Decides about {', '.join(operations)}."
    users = [each for each in rules.rules if f"rule:{rule.name}" in each.check_str]
    return "Used by other rules." if users else "Not used by the defaults."


def _label(name: str) -> str:
    return label_of("rule", name)


def _link(name: str) -> str:
    return f"[{code(name)}](#{_label(name)})"
