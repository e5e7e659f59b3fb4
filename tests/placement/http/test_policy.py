"""The rules of the policy are upstream's."""

import itertools

import pytest
from oslo_config import cfg
from oslo_policy import opts, policy

from placement import policies
from roost.auth import Identity
from roost.placement.errors import Forbidden
from roost.placement.http.policy import PREFIX, RULES, Policy, default_rules

OF_V1 = {"allocation_candidates:explain", "changes:list"}
ROLES = ("admin", "service", "reader", "member")


def test_names_checks_and_scopes_are_upstreams() -> None:
    def by_name(rules: list[policy.RuleDefault]) -> dict[str, tuple[object, ...]]:
        return {
            each.name: (
                each.check_str,
                each.scope_types,
                each.deprecated_rule and (each.deprecated_rule.name, each.deprecated_rule.check_str),
            )
            for each in rules
        }

    of_v1 = {PREFIX + rule for rule in OF_V1}
    ours = {name: rule for name, rule in by_name(default_rules()).items() if name not in of_v1}
    assert ours == by_name(policies.list_rules())


@pytest.mark.parametrize("new_defaults", [True, False])
def test_decisions_are_upstreams(new_defaults: bool) -> None:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    opts.set_defaults(conf)
    conf.set_override("enforce_new_defaults", new_defaults, "oslo_policy")
    upstream = policy.Enforcer(conf)
    upstream.suppress_default_change_warnings = True
    upstream.register_defaults(policies.list_rules())
    ours = Policy(new_defaults)
    scopes = ({"project_id": "p"}, {"system_scope": "all"}, {"domain_id": "d"}, {})
    for count, scope, rule in itertools.product(range(3), scopes, sorted(set(RULES) - OF_V1)):
        for roles in itertools.combinations(ROLES, count):
            for asked in ("p", "q", None):
                identity = Identity("u", roles=roles, **scope)
                target = {"project_id": asked if rule == "usages" else identity.project_id, "user_id": "u"}
                expected = upstream.authorize(PREFIX + rule, target, identity.credentials())
                assert allows(ours, identity, rule, asked) == expected, (rule, roles, scope, asked)


def allows(policy: Policy, identity: Identity, rule: str, project: str | None) -> bool:
    try:
        policy.authorise(identity, rule, project)
    except Forbidden as refusal:
        assert str(refusal) == f"Policy does not allow placement:{rule} to be performed."
        return False
    return True
