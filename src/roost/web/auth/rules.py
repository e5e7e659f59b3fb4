"""Policy rules: decisions by oslo.policy, from the defaults of a service and the operator's policy files.

oslo.policy takes tens of microseconds for a check and looks at its files each time. `PolicyRules` looks at
them once a second and caches decisions until the rules change, so most checks take about one microsecond.
"""

import os
import re
import time
from collections.abc import Iterable

import structlog
from oslo_policy import _checks, opts, policy

from roost.model.errors import OperatorError
from roost.process.logs import collected_messages
from roost.process.option_source import Source
from roost.web.auth.identity import Identity

_log = structlog.get_logger()

LOOK_SECONDS = 1.0
"""Seconds between two checks whether the policy files have changed."""

CACHED_DECISIONS = 10_000
"""Decisions that are cached at most. With more, the cache is emptied."""

_REMOTE = re.compile(r"\bhttps?:")
_PARSER = "oslo_policy._parser"
"""The logger of errors in policy files. oslo.policy only logs them, and lets the rule allow nobody."""

# oslo.policy looks for kinds of checks in all installed packages. It finds only checks that call another
# server, which are refused here and would import an HTTP client.
_checks.extension_checks = {}


_ROLE = re.compile(r"role:([^\s()%]+)")


class PolicyRules:
    """Decides whether an identity may act, by policy rules.

    A policy file that becomes invalid while the process runs changes nothing: the last valid rules stay, and
    each change of the files that leaves them invalid is logged in one line.

    Args:
        defaults: The rules of the service.
        source: The source of the options of the group ``oslo_policy``. Policy files are looked for beside its
            files. None: there are only the defaults.
        enforce_new_defaults: Whether the deprecated rules of defaults are ignored.

    Raises:
        OperatorError: A policy file is invalid.
    """

    def __init__(
        self, defaults: Iterable[policy.RuleDefault], source: Source | None, enforce_new_defaults: bool
    ) -> None:
        conf = (source or Source()).open()
        (source or Source()).register(conf, dict(opts.list_opts()))
        enforcer = policy.Enforcer(conf)
        if source is None:
            # An empty file: oslo.policy loads the defaults only after it has looked for files.
            conf.set_override("policy_file", os.devnull, "oslo_policy")
            conf.set_override("policy_dirs", [], "oslo_policy")
        conf.set_override("enforce_new_defaults", enforce_new_defaults, "oslo_policy")
        enforcer.suppress_default_change_warnings = True
        enforcer.register_defaults(list(defaults))
        self._enforcer = enforcer
        self._files = ", ".join([conf.oslo_policy.policy_file, *conf.oslo_policy.policy_dirs])
        self._valid: policy.Rules | None = None
        self._last_error: str | None = None
        self._decisions: dict[tuple[Identity, str, str | None], bool] = {}
        self._look_at = 0.0
        if (error := self._load()) is not None:
            raise OperatorError(error)

    @property
    def roles(self) -> set[str]:
        """Return the roles that the rules name, in lower case, as they are compared."""
        return {role.lower() for check in self._enforcer.rules.values() for role in _ROLE.findall(str(check))}

    def allows(self, identity: Identity, rule: str, project_id: str | None) -> bool:
        """Return whether a registered rule allows the identity to act on resources of a project."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            self._reload()
        if len(self._decisions) >= CACHED_DECISIONS:
            self._decisions.clear()
        key = (identity, rule, project_id)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decisions[key] = self._decide(identity, rule, project_id)
        return decision

    def _decide(self, identity: Identity, rule: str, project_id: str | None) -> bool:
        target = {"project_id": project_id, "user_id": identity.user_id}
        return bool(self._enforcer.authorize(rule, target, identity.credentials()))

    def _reload(self) -> None:
        """Read files that have changed; keep the rules if one of them is invalid."""
        error = self._load()
        if error is not None and error != self._last_error:
            _log.error("the policy files are invalid; the last valid rules stay", error=error)
        self._last_error = error

    def _load(self) -> str | None:
        """Read the files if they have changed. Returns the fault in them, with which the valid rules stay."""
        enforcer = self._enforcer
        enforcer.use_conf = True
        with collected_messages(_PARSER) as errors:
            try:
                enforcer.load_rules()
            except AttributeError:
                errors.append("a file is no mapping from names to rules")
            except Exception as error:  # oslo.policy raises any error for a file of an unforeseen form
                errors.append(" ".join(str(error).split()))
        # Decisions do not load files, so that they never use rules that were not checked.
        enforcer.use_conf = False
        if not errors and enforcer.rules == self._valid:
            return self._last_error
        errors += [
            f"{name}: a rule cannot ask another server here (http:, https:); write it with roles and projects"
            for name, check in enforcer.rules.items()
            if _REMOTE.search(str(check))
        ]
        if not errors:
            self._valid = policy.Rules(enforcer.rules, enforcer.default_rule)
            self._decisions.clear()
            return None
        if self._valid is not None:
            enforcer.set_rules(self._valid)
        return f"policy ({self._files}): {'; '.join(dict.fromkeys(errors))}"
