"""Rules by oslo.policy: defaults, files, and how often a decision is made."""

import os
import time
from pathlib import Path
from unittest.mock import patch

import pytest
from oslo_policy.policy import Enforcer, RuleDefault
from structlog.testing import capture_logs

from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.web.auth import Identity
from roost.web.auth import rules as rules_module
from roost.web.auth.rules import PolicyRules

DEFAULTS = [RuleDefault("see", "role:reader"), RuleDefault("own", "project_id:%(project_id)s")]
READER = Identity("u", "p", ("reader",))
CHIEF = Identity("c", "q", ("Chief",))


def opened(folder: Path, rules: str | None = None, options: str = "") -> PolicyRules:
    """The rules of a configuration file in a folder with a policy file beside it."""
    (folder / "placement.conf").write_text(f"[oslo_policy]\n{options}\n")
    if rules is not None:
        (folder / "policy.yaml").write_text(rules)
    return PolicyRules(DEFAULTS, Source((str(folder / "placement.conf"),)), True)


def change(file: Path, text: str, seconds: int = 5) -> None:
    """Write a file whose time is ``seconds`` from now: the clock of a file system may be coarse."""
    file.write_text(text)
    os.utime(file, (time.time() + seconds,) * 2)


def test_without_files_the_defaults_hold() -> None:
    rules = PolicyRules(DEFAULTS, None, True)
    assert rules.allows(READER, "see", None)
    assert not rules.allows(CHIEF, "see", None)
    assert rules.allows(CHIEF, "own", "q")
    assert not rules.allows(CHIEF, "own", "p")


def test_a_policy_file_beside_the_configuration_replaces_rules(tmp_path: Path) -> None:
    rules = opened(tmp_path, "see: role:chief or rule:mine\nmine: user_id:u")
    assert rules.allows(CHIEF, "see", None)
    assert rules.allows(Identity("u"), "see", None)
    assert not rules.allows(Identity("x", roles=("reader",)), "see", None)
    assert rules.allows(CHIEF, "own", "q")


def test_folders_add_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.yaml").write_text("see: '!'")
    rules = opened(tmp_path, "see: '@'", "policy_dirs = more")
    assert not rules.allows(READER, "see", None)


def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_module, "LOOK_SECONDS", 0.0)
    rules = opened(tmp_path, "see: '@'")
    assert rules.allows(CHIEF, "see", None)
    change(tmp_path / "policy.yaml", "see: '!'")
    assert not rules.allows(CHIEF, "see", None)


def test_a_decision_is_remembered_for_who_asks_what_about_which_project() -> None:
    rules = PolicyRules(DEFAULTS, None, True)
    for _ in range(2):
        assert rules.allows(READER, "see", None) and not rules.allows(CHIEF, "see", None)
        assert rules.allows(CHIEF, "own", "q") and not rules.allows(CHIEF, "own", "p")


def test_what_is_remembered_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_module, "CACHED_DECISIONS", 10)
    rules = PolicyRules(DEFAULTS, None, True)
    for number in range(100):
        assert rules.allows(READER, "own", f"p{number}") is False
    assert len(rules._decisions) <= 10


def test_oslo_policy_is_asked_once_while_its_files_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules_module, "LOOK_SECONDS", 0.0)
    rules = opened(tmp_path, "see: role:reader")
    with patch.object(Enforcer, "authorize", autospec=True, side_effect=Enforcer.authorize) as asked:
        for _ in range(1_000):
            assert rules.allows(Identity("u", "p", ("reader",)), "see", None)
    assert asked.call_count == 1


@pytest.mark.parametrize("rule", ["http://there/ask", "role:a or https://there/ask", "not http:%(x)s"])
def test_a_rule_that_asks_another_server_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    with pytest.raises(OperatorError, match="see: a rule cannot ask another server"):
        opened(tmp_path, f"see: '{rule}'")
    monkeypatch.setattr(rules_module, "LOOK_SECONDS", 0.0)
    rules = opened(tmp_path, "see: role:reader")
    change(tmp_path / "policy.yaml", f"see: '{rule}'")
    assert rules.allows(READER, "see", None)
    assert not rules.allows(CHIEF, "see", None)


INVALID = ["[", "- a\n- b", "see: [[[", "see: role:a and (or", "see: 5", "\0"]


@pytest.mark.parametrize("text", INVALID)
def test_an_invalid_policy_file_is_refused_in_one_line(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "oslo_policy")
    with pytest.raises(OperatorError, match=r"^policy \(policy.yaml, policy.d\): .") as refused:
        opened(tmp_path, text)
    assert "\n" not in str(refused.value)
    assert [record for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("text", INVALID)
def test_the_last_valid_rules_stay_while_a_file_is_invalid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(rules_module, "LOOK_SECONDS", 0.0)
    rules = opened(tmp_path, "see: role:chief")
    change(tmp_path / "policy.yaml", text)
    with capture_logs() as lines:
        for _ in range(3):
            assert rules.allows(CHIEF, "see", None)
            assert not rules.allows(READER, "see", None)
            assert rules.allows(CHIEF, "own", "q")
    assert [line["log_level"] for line in lines] == ["error"]
    change(tmp_path / "policy.yaml", "see: role:reader", 10)
    assert rules.allows(READER, "see", None)
    assert not rules.allows(CHIEF, "see", None)


def test_an_invalid_file_of_a_folder_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules_module, "LOOK_SECONDS", 0.0)
    (tmp_path / "more").mkdir()
    change(tmp_path / "more" / "a.yaml", "see: role:chief", 0)
    rules = opened(tmp_path, "own: '!'", "policy_dirs = more")
    change(tmp_path / "more" / "a.yaml", "see: 'role:a and (or'")
    os.utime(tmp_path / "more", (time.time() + 5,) * 2)
    assert rules.allows(CHIEF, "see", None)
    assert not rules.allows(CHIEF, "own", "q")
