"""Reports options that are set without effect: options of upstream that Roost lacks, and unknown names."""

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from oslo_config import cfg

from roost.model.errors import OperatorError
from roost.process.option_source import Source, variable

_FORMAT = "lines have one format, with all of it; use_json = true gives JSON"
_ROTATION = "another program rotates the file, such as logrotate; a file that was moved is opened anew"
_LOG_RATE = "the number of lines is not limited"
_SQL = "default_log_levels = sqlalchemy.engine=INFO logs statements"
_POOL = "connections are few and look after themselves"
_TRIES = "the database's own time limits count"
_PROFILER = "there is no profiler"
_REMOTE = "rules ask no other server"
_OPEN = "everybody may ask for it, and it tells no secrets"
_PATHS = "nothing is kept in files but the database"

NO_EFFECT: Mapping[str, Mapping[str, str]] = {
    "DEFAULT": {
        "tempdir": _PATHS,
        "pybasedir": _PATHS,
        "state_path": _PATHS,
        "log_options": "roost config prints the options, and signal USR2 logs them",
        "log_config_append": "log_file, use_syslog, use_json and default_log_levels configure logging",
        "use_journal": "the journal takes standard error",
        "watch_log_file": "a file that was moved is always opened anew",
        "log_color": _FORMAT,
        "log_rotate_interval": _ROTATION,
        "log_rotate_interval_type": _ROTATION,
        "max_logfile_count": _ROTATION,
        "max_logfile_size_mb": _ROTATION,
        "log_rotation_type": _ROTATION,
        "logging_context_format_string": _FORMAT,
        "logging_default_format_string": _FORMAT,
        "logging_debug_format_suffix": _FORMAT,
        "logging_exception_prefix": _FORMAT,
        "logging_user_identity_format": _FORMAT,
        "publish_errors": "errors are logged and not sent anywhere else",
        "instance_format": _FORMAT,
        "instance_uuid_format": _FORMAT,
        "rate_limit_interval": _LOG_RATE,
        "rate_limit_burst": _LOG_RATE,
        "rate_limit_except_level": _LOG_RATE,
        "fatal_deprecations": "nothing that is used is deprecated",
    },
    "placement": {
        "allocation_conflict_retry_count": "writes queue and are judged one after the other: no retries",
    },
    "workarounds": {
        "optimize_for_wide_provider_trees": "wide provider trees are always searched that way",
    },
    "placement_database": {
        "slave_connection": "reads are answered from memory",
        "sqlite_synchronous": "SQLite always syncs",
        "mysql_sql_mode": "it is always TRADITIONAL",
        "connection_recycle_time": _POOL,
        "max_pool_size": _POOL,
        "max_overflow": _POOL,
        "pool_timeout": _POOL,
        "max_retries": _TRIES,
        "retry_interval": _TRIES,
        "connection_debug": _SQL,
        "connection_trace": _SQL,
    },
    "oslo_policy": {
        "enforce_scope": "the scope of tokens is always enforced",
        "remote_content_type": _REMOTE,
        "remote_ssl_verify_server_crt": _REMOTE,
        "remote_ssl_ca_crt_file": _REMOTE,
        "remote_ssl_client_crt_file": _REMOTE,
        "remote_ssl_client_key_file": _REMOTE,
        "remote_timeout": _REMOTE,
    },
    "healthcheck": {
        "backends": "disable_by_file_path and disable_by_file_paths count where they are set",
        "detailed": "stacks of threads are not for everybody",
        "allowed_source_ranges": _OPEN,
        "ignore_proxied_requests": _OPEN,
        "enable_by_file_paths": "only files that disable are supported",
    },
    "profiler": {
        "enabled": _PROFILER,
        "trace_sqlalchemy": _PROFILER,
        "trace_requests": _PROFILER,
        "trace_management_api": _PROFILER,
        "hmac_keys": _PROFILER,
        "connection_string": _PROFILER,
        "es_doc_type": _PROFILER,
        "es_scroll_time": _PROFILER,
        "es_scroll_size": _PROFILER,
        "socket_timeout": _PROFILER,
        "sentinel_service_name": _PROFILER,
        "filter_error_trace": _PROFILER,
    },
}
"""Options of upstream that are accepted and have no effect, by group, each with the reason."""

_NEAR_VARIABLE = 0.85
"""Similarity, from 0 to 1, from which on the name of a variable is taken for a misspelling of another."""

_VARIABLE = re.compile(r"OS_([A-Z0-9_]+?)__([A-Z0-9_]+)")


def describe_unsupported(
    source: Source, supported: Mapping[str, set[str]], unused: Mapping[str, str | None]
) -> list[str]:
    """Return a line for each option of the files and the environment that has no effect, without its value.

    Args:
        supported: The names of the options that have an effect, by group.
        unused: Groups that this command does not use, each with the reason to report. None: not reported.

    Raises:
        OperatorError: An option of the command line has no effect.
    """
    for setting in source.settings:
        if setting.option not in supported.get(setting.group, ()):
            why = why_without_effect(setting.group, setting.option, supported)
            raise OperatorError(f"--set {setting.group}.{setting.option}: {why}")
    lines: dict[str, None] = {}
    for place, group, option in (*options_in_files(source), *_in_environment(supported)):
        if group in unused:
            if reason := unused[group]:
                lines[f"{place}: [{group}] is ignored: {reason}"] = None
        elif option not in supported.get(group, ()):
            lines[
                f"{place}: [{group}] {option} is ignored: {why_without_effect(group, option, supported)}"
            ] = None
    return [*lines, *_misspelt_variables(supported)]


def why_without_effect(group: str, option: str, supported: Mapping[str, set[str]]) -> str:
    """Return why an option has no effect. ``supported``: as of `describe_unsupported`."""
    if reason := NO_EFFECT.get(group, {}).get(option):
        return reason
    if near := get_close_matches(option, sorted(supported.get(group, ())), 1):
        return f"no such option; did you mean {near[0]}?"
    if option_groups := sorted(each for each, names in supported.items() if option in names):
        [near_group] = get_close_matches(group, option_groups, 1, cutoff=0.0)
        return f"no such option; there is one in [{near_group}]"
    if group not in supported and (near := get_close_matches(group, sorted(supported), 1)):
        return f"no such group; did you mean [{near[0]}]?"
    return "no such option"


def groups_in(source: Source) -> set[str]:
    """Return the groups that the files and the command line of a source name."""
    return {group for _, group, _ in options_in_files(source)} | {
        setting.group for setting in source.settings
    }


def options_in_files(source: Source) -> Iterator[tuple[str, str, str]]:
    """Yield the file, the group and the name of each option that the files of a source set."""
    for file in source.files:
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(file, sections).parse()
        for group, options in sections.items():
            for option in options:
                known = group if group.upper() != "DEFAULT" else "DEFAULT"
                yield file, known, option.replace("-", "_")


def _in_environment(supported: Mapping[str, set[str]]) -> Iterator[tuple[str, str, str]]:
    """Yield the variables that name an option of a known group. Others belong to other programs."""
    groups = {group.upper(): group for group in (*supported, *NO_EFFECT)}
    for name in sorted(os.environ):
        found = _VARIABLE.fullmatch(name)
        if found and found[1] in groups:
            yield "environment", groups[found[1]], found[2].lower()


def _misspelt_variables(supported: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield a line for each variable of an unknown group whose name is similar to that of an option.

    The variables of OpenStack's clients begin alike, but have one underscore where these have two.
    """
    known = {variable(group, option) for group, names in supported.items() for option in names}
    groups = {group.upper() for group in (*supported, *NO_EFFECT)}
    # A name is recognised even without the second underscore, and in upper or lower case.
    plain = {name.replace("__", "_"): name for name in known}
    for name in sorted(os.environ):
        upper = name.upper()
        found = _VARIABLE.fullmatch(name)
        if not upper.startswith("OS_") or name in known or (found and found[1] in groups):
            continue
        meant = plain.get(re.sub("_+", "_", upper).rstrip("_"))
        if meant is None and "__" in name:
            meant = next(iter(get_close_matches(upper, known, 1, cutoff=_NEAR_VARIABLE)), None)
        if meant is not None:
            yield f"environment: {name} is ignored: no such option; did you mean {meant}?"
