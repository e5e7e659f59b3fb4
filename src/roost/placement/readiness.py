"""Health checks of the Placement API: its database, a replica at the head, and Keystone."""

from collections.abc import Sequence
from functools import partial

from roost.ledger import SCHEMA, Ledger
from roost.placement.options import PlacementOptions
from roost.process.option_source import Source
from roost.storage import DatabaseFull, DatabaseReadOnly, StorageError, check_writes
from roost.web.health import Health, HealthCheck, HealthOptions, NoAnswer

KEYSTONE_SECONDS = 10.0
"""Seconds for which an answer of Keystone is cached. Each worker asks once in this time, however often it is
probed."""


def placement_health(ledger: Ledger, options: PlacementOptions) -> Health:
    """Make the checks of `roost serve`. Raises `OperatorError` if the options for Keystone cannot work."""
    return Health((*ledger_checks(ledger, options.health), *keystone_checks(options)), options.health)


def keystone_checks(options: PlacementOptions) -> Sequence[HealthCheck]:
    """Make the check of Keystone, if that validates tokens. Raises `OperatorError` for faulty options."""
    if options.auth_strategy != "keystone":
        return ()
    # Imported only here: its import takes as long as all others together.
    from roost.web.auth.reachability import Reachability

    keystone = Reachability(options.source or Source(), options.health.check_seconds)
    return (HealthCheck("keystone", keystone.ask, lasting=KEYSTONE_SECONDS),)


def ledger_checks(ledger: Ledger, options: HealthOptions) -> Sequence[HealthCheck]:
    """Make the checks of a ledger.

    A process that serves no requests does not follow the commits of others. So the check of the ledger brings
    the replica to the head before it measures the lag. Otherwise an idle process would be reported as not
    ready, get no requests, and stay behind.
    """
    return (
        HealthCheck("database", partial(_use, ledger), database_verdict),
        HealthCheck("ledger", ledger.current, partial(_ledger, ledger, options)),
        HealthCheck("history", judge=lambda _: _history(ledger)),
    )


async def _use(ledger: Ledger) -> None:
    await ledger.look()
    await check_writes(ledger.database, SCHEMA)


def database_verdict(failure: Exception | None) -> str | None:
    """Return why requests that use a database fail, None if they do not."""
    if failure is None:
        return None
    if isinstance(failure, NoAnswer):
        return str(failure)
    if isinstance(failure, DatabaseFull):
        return "it has no space left: every write fails, and what only reads is answered"
    if isinstance(failure, DatabaseReadOnly):
        return "it takes no writes now: every write fails, and what only reads is answered"
    return "it cannot be read; the log has the error"


def _ledger(ledger: Ledger, options: HealthOptions, failure: Exception | None) -> str | None:
    # The check of the database reports that it does not answer.
    if failure is not None and not isinstance(failure, NoAnswer | StorageError):
        return "the commits of the database cannot be applied; the log has the error"
    status = ledger.status()
    if status.lag_commits > options.max_lag_commits:
        return f"{status.lag_commits} commits behind the head, at most {options.max_lag_commits} allowed"
    if status.lag_seconds > options.max_lag_seconds:
        return f"{status.lag_seconds:.0f} s behind the head, at most {options.max_lag_seconds:g} s allowed"
    return None


def _history(ledger: Ledger) -> str | None:
    status = ledger.status()
    if not status.trimmed_away:
        return None
    return (
        f"this process is at commit {status.version}, and the commits before {status.oldest} are trimmed; "
        "its fleet is loaded anew"
    )
