"""What an identity may do: rules by oslo.policy, from its files and the defaults of a service.

oslo.policy takes tens of microseconds for a check, and looks at its files each time. Here a decision is
remembered for a second, so a check costs about one microsecond, and a change of the files counts after a
second at most.
"""

import os
import re
import time
from collections.abc import Iterable

import structlog
from oslo_policy import _checks, opts, policy

from roost.auth.identity import Identity
from roost.auth.source import Source
from roost.model.errors import OperatorError

_log = structlog.get_logger()

_REMOTE = re.compile(r"\bhttps?:")
_REMEMBERED_SECONDS = 1.0
_REMEMBERED_DECISIONS = 10_000


# oslo.policy would look for kinds of checks in every package installed, and find only those that ask another
# server, with an HTTP client to import.
_checks.extension_checks = {}


class Rules:
    """Says what is allowed.

    ``source``: where the options of the group ``oslo_policy`` come from, and beside whose files the policy
    files are looked for; None: there are neither files nor options, only the defaults.
    """

    def __init__(
        self, defaults: Iterable[policy.RuleDefault], source: Source | None, enforce_new_defaults: bool
    ) -> None:
        """Read the files. Raises `OperatorError` if something is wrong with them."""
        conf = (source or Source()).open()
        for group, options in opts.list_opts():
            (source or Source()).register(conf, group, options)
        enforcer = policy.Enforcer(conf)
        if source is None:
            # An empty file: oslo.policy puts the defaults in only where it has looked for files.
            conf.set_override("policy_file", os.devnull, "oslo_policy")
            conf.set_override("policy_dirs", [], "oslo_policy")
        conf.set_override("enforce_new_defaults", enforce_new_defaults, "oslo_policy")
        enforcer.suppress_default_change_warnings = True
        enforcer.register_defaults(list(defaults))
        self._enforcer = enforcer
        self._decisions: dict[tuple[Identity, str, str | None], bool] = {}
        self._forget_at = 0.0
        self._checked_rules: policy.Rules | None = None
        try:
            remote = self._load()
        except Exception as error:  # for a file of an unforeseen form oslo.policy has no error of its own
            raise OperatorError(f"policy: {error}") from error
        if remote:
            raise OperatorError(
                f"policy: {', '.join(remote)}: a rule cannot ask another server here (http:, https:); "
                "write it with roles and projects"
            )

    def allows(self, identity: Identity, rule: str, project_id: str | None) -> bool:
        """Whether a registered rule lets the identity act on what belongs to a project."""
        now = time.monotonic()
        if now >= self._forget_at or len(self._decisions) >= _REMEMBERED_DECISIONS:
            self._decisions.clear()
            self._forget_at = now + _REMEMBERED_SECONDS
        key = (identity, rule, project_id)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decisions[key] = self._decide(identity, rule, project_id)
        return decision

    def _decide(self, identity: Identity, rule: str, project_id: str | None) -> bool:
        self._load()
        target = {"project_id": project_id, "user_id": identity.user_id}
        return bool(self._enforcer.authorize(rule, target, identity.credentials()))

    def _load(self) -> list[str]:
        """Read the files again if they changed, and close the rules that ask another server; their names.

        Such a rule would wait for that server with every other request waiting behind it.
        """
        self._enforcer.load_rules()
        rules = self._enforcer.rules
        if rules is self._checked_rules:
            return []
        remote = sorted(name for name, check in rules.items() if _REMOTE.search(str(check)))
        for name in remote:
            _log.error("a policy rule asks another server: not supported, it allows nobody", rule=name)
            rules[name] = policy.RuleDefault(name, "!").check
        self._checked_rules = rules
        return remote
