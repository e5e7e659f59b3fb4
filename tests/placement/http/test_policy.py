"""The rules of the policy are upstream's."""

import itertools
from pathlib import Path

import pytest
from oslo_config import cfg
from oslo_policy import opts, policy

from placement import policies
from roost.placement.access import PREFIX, RULES, default_rules, open_policy
from roost.placement.options import PlacementOptions
from roost.process.option_source import Source
from roost.web.auth import Identity
from roost.web.errors import Forbidden
from roost.web.policy import Policy

OF_V1 = {"allocation_candidates:explain", "capacity:show", "changes:list", "word:announce"}
ROLES = ("admin", "service", "reader", "member", "cloud_admin")


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


FILES = {
    "none": "",
    "the old rule is another role's": '"admin_api": "role:cloud_admin"',
    "rules are of the old one": '"placement:resource_providers:list": "rule:admin_api"\n'
    '"placement:allocations:update": "rule:admin_api or role:member"',
    "rules of today's bases": '"admin_or_service_api": "role:reader"\n"service_api": "role:member"',
    "a project's": '"placement:usages": "role:member and project_id:%(project_id)s"\n'
    '"project_reader_api": "role:member and project_id:%(project_id)s"',
    "open and shut": '"placement:traits:list": "@"\n"placement:traits:show": ""\n'
    '"placement:reshaper:reshape": "!"',
    "rules of its own": '"ours": "role:member and not role:reader"\n"placement:usages": "rule:ours"\n'
    '"placement:resource_classes:list": "rule:not_there"',
    "names that nobody asks for": '"placement:nothing": "!"\n"default": "@"',
}
"""What operators have in a policy.yaml."""


@pytest.mark.parametrize("new_defaults", [True, False])
@pytest.mark.parametrize("file", FILES)
def test_decisions_are_upstreams(file: str, new_defaults: bool, tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(FILES[file])
    configuration = tmp_path / "placement.conf"
    configuration.write_text(f"[oslo_policy]\npolicy_file = {path}\n")
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[str(configuration)])
    opts.set_defaults(conf)
    conf.set_override("enforce_new_defaults", new_defaults, "oslo_policy")
    upstream = policy.Enforcer(conf)
    upstream.suppress_default_change_warnings = True
    upstream.register_defaults(policies.list_rules())
    source = Source((str(configuration),)) if FILES[file] else None
    ours = open_policy(PlacementOptions(enforce_new_defaults=new_defaults, source=source))
    scopes = ({"project_id": "p"}, {"system_scope": "all"}, {"domain_id": "d"}, {})
    most = 3 if file in ("none", "rules of its own") else 2
    for count, scope, rule in itertools.product(range(most), scopes, sorted(set(RULES) - OF_V1)):
        for roles in itertools.combinations(ROLES, count):
            for asked in ("p", "q", None):
                identity = Identity("u", roles=roles, **scope)
                target = {"project_id": asked if rule == "usages" else identity.project_id, "user_id": "u"}
                expected = upstream.authorize(PREFIX + rule, target, identity.credentials())
                assert allows(ours, identity, rule, target["project_id"]) == expected, (
                    rule,
                    roles,
                    scope,
                    asked,
                )


def allows(policy: Policy, identity: Identity, rule: str, project: str | None) -> bool:
    try:
        policy.check(identity, PREFIX + rule, project)
    except Forbidden as refusal:
        assert str(refusal) == f"Policy does not allow placement:{rule} to be performed."
        return False
    return True
