"""The alert rules: accepted by promtool, about metrics of the catalogue, and each shown to fire."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from roost.dashboard import addresses
from roost.process.metrics.catalogue import CATALOGUE
from support.databases import Servers
from support.prometheus import promtool

RULES = Path(__file__).parents[2] / "packaging" / "prometheus" / "roost-alerts.yaml"
PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"
TESTS = Path(__file__).with_name("alerts.yaml")
KNOWN = {metric.name for metric in CATALOGUE}
DASHBOARD = "{{ $externalLabels.roost_dashboard }}"
"""The address of Roost's dashboard in an annotation."""
PAGES = {
    addresses.ROOT, addresses.CELLS, addresses.DECISIONS, addresses.EVENTS, addresses.FLAVORS,
    addresses.HOSTS, addresses.INSTANCES, addresses.MAP, addresses.WHAT_IF,
}  # fmt: skip
"""The pages of Roost's dashboard that need no name of a thing."""


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def metrics_in(expression: str) -> set[str]:
    """The metrics of Roost that an expression names, histograms without their endings."""
    names = set(re.findall(r"\broost_\w+", expression))
    return {name if name in KNOWN else re.sub(r"_(bucket|count|sum)$", "", name) for name in names}


def test_the_rules_do_as_their_tests_say(servers: Servers) -> None:
    servers.needs("prometheus")
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tested = promtool("test", "rules", TESTS)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_each_rule_is_tested() -> None:
    tested = {test["name"] for test in yaml.safe_load(TESTS.read_text())["tests"]}
    assert tested == {rule["alert"] for rule in rules()}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_is_about_metrics_that_there_are_and_says_what_to_do(rule: dict[str, Any]) -> None:
    assert metrics_in(rule["expr"]) <= KNOWN
    assert set(rule["annotations"]) == {"summary", "description", "dashboard"}
    assert rule["annotations"]["dashboard"].removeprefix(DASHBOARD) in PAGES
    assert rule["labels"]["severity"] in {"page", "ticket"}
    # What a text names is there as well.
    assert metrics_in(rule["annotations"]["summary"] + rule["annotations"]["description"]) <= KNOWN


def test_the_page_lists_the_alerts() -> None:
    listed = re.findall(r"^\| (Roost\w+) \((\w+)\) \|", PAGE.read_text(), flags=re.MULTILINE)
    assert listed == [(rule["alert"], rule["labels"]["severity"]) for rule in rules()]
