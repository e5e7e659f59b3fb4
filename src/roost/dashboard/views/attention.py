"""Findings about what needs attention, with the pages that show more."""

import shutil
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from cryptography import x509

from roost.conductor.findings import (
    LEVELS,
    Level,
    StatusFinding,
    finding_of_maintenance,
    findings_of_audit,
    findings_of_cell,
    findings_of_feature,
    findings_of_process,
    findings_of_refusals,
    hosts_disabled,
    hosts_down,
)
from roost.conductor.hosts.cells import SeenCell
from roost.conductor.hosts.watch import held_back_by
from roost.conductor.maintenance.types import MaintenancesQuery
from roost.dashboard import addresses
from roost.dashboard.fleet.criteria import NOWHERE
from roost.dashboard.fleet.hosts import HostsNow
from roost.dashboard.html.values import counted, text_of_moment
from roost.dashboard.service import CloudReads
from roost.ledger import Ledger
from roost.model.service_version import FEATURES
from roost.records.summary import FailedBuilds, RunSummary
from roost.scheduler.nodes.host_states import DOWN
from roost.state.api_database.audit import read_audit_state

LAG_SECONDS: Final = 5.0
"""Seconds of lag of this process behind the ledger from which it is told."""

CERTIFICATE_DAYS: Final = 21.0
"""Days before the end of a certificate from which it is told."""

MANY_BUILDS: Final = 5
"""Failed builds on one host in a day from which somebody should look at it."""

FULL_SHARE: Final = 0.9
"""Share of a disk in use from which it is told."""


class Attention(msgspec.Struct, frozen=True):
    """A finding, and the address of the page that shows more."""

    level: Level
    about: str
    says: str
    href: str | None = None


def worst_first(found: list[Attention]) -> tuple[Attention, ...]:
    """Return findings by level; those of one level keep their order."""
    return tuple(sorted(found, key=lambda each: LEVELS.index(each.level)))


def of_cells(cells: list[SeenCell]) -> list[Attention]:
    """Return the findings about cells."""
    return [
        _linked(finding, addresses.CELLS)
        for each in cells
        for finding in findings_of_cell(each.mapping.name, each.state, each.hosts, each.enabled, each.reason)
    ]


def of_processes(cloud: CloudReads) -> list[Attention]:
    """Return the findings about processes and features."""
    found = [
        finding
        for each in cloud.watch.services()
        for finding in findings_of_process(
            each.lease.name, each.lease.kind, each.cell, each.state, text_of_moment(each.lease.since)
        )
    ]
    for feature in FEATURES:
        found += findings_of_feature(feature.name, len(held_back_by(cloud.watch, feature)))
    return [_linked(each, addresses.CELLS) for each in found]


def of_hosts(now: HostsNow) -> list[Attention]:
    """Return the findings about hosts that are down or disabled."""
    table = now.table
    down = now.layout.nodes[now.states == DOWN]
    found = []
    for number in np.unique(table.cell[down]).tolist():
        cell = table.cells[number]
        names = sorted({table.hosts[index] for index in down[table.cell[down] == number].tolist()})
        href = addresses.with_query(addresses.HOSTS, cell=cell or NOWHERE, state="down")
        found.append(_linked(hosts_down(cell, names), href))
    disabled = sorted({word.host for word in table.disabled if word.host})
    if disabled:
        href = addresses.with_query(addresses.HOSTS, state="disabled")
        found.append(_linked(hosts_disabled(disabled), href))
    return found


def of_refusals(summary: RunSummary, minutes: int) -> list[Attention]:
    """Return the findings about refusals of the last minutes."""
    refused = Counter(dict(summary.refused))
    href = addresses.with_query(addresses.DECISIONS, refused="true")
    return [
        _linked(each, href)
        for each in findings_of_refusals(refused, summary.runs, minutes, more=summary.more)
    ]


def of_builds(failed: Sequence[FailedBuilds]) -> list[Attention]:
    """Return the finding about builds that failed in the last day. ``failed``: by node."""
    total = sum(each.number for each in failed)
    if not total:
        return []
    worst = max(failed, key=lambda each: each.number)
    says = f"{total:,} failed in 24 h, on {counted(len(failed), 'host')}"
    if worst.number >= MANY_BUILDS:
        says += f", {worst.number:,} of them on {worst.host}"
    level: Level = "look" if worst.number >= MANY_BUILDS else "note"
    return [Attention(level, "builds", says, addresses.with_query(addresses.HOSTS, sort="failures"))]


async def of_audit(cloud: CloudReads) -> list[Attention]:
    """Return the findings about the audit."""
    state = await cloud.api.read(read_audit_state())
    found = findings_of_audit(state.report.asks, state.report.findings, state.ended)
    return [_linked(each, addresses.CELLS) for each in found]


async def of_maintenances(cloud: CloudReads) -> list[Attention]:
    """Return the findings about the newest maintenances that are under way."""
    page = await cloud.maintenances.page(MaintenancesQuery(under_way=True))
    return [
        _linked(
            finding_of_maintenance(each.uuid, each.state, each.left, each.reason),
            addresses.maintenance(each.uuid),
        )
        for each in page.maintenances
    ]


def of_ledger(ledger: Ledger) -> list[Attention]:
    """Return the finding that this process is behind the ledger."""
    status = ledger.status()
    if status.lag_seconds < LAG_SECONDS:
        return []
    text = f"the pages are {status.lag_seconds:.0f} s behind: {status.lag_commits:,} commits are not read yet"
    return [Attention("look", "dashboard", text)]


def of_disks(files: Collection[Path]) -> list[Attention]:
    """Return the findings about disks of this machine that are nearly full. ``files``: files on them."""
    found = []
    for folder in sorted({file.absolute().parent for file in files}):
        try:
            usage = shutil.disk_usage(folder)
        except OSError as error:
            found.append(Attention("look", f"{folder}", f"cannot be read: {error.strerror}"))
            continue
        if usage.used >= FULL_SHARE * usage.total:
            full, free = 100 * usage.used / usage.total, usage.free // 2**20
            level: Level = "fails" if not usage.free else "look"
            found.append(
                Attention(level, f"{folder}", f"the disk is {full:.0f} % full, {free:,} MiB are free")
            )
    return found


def of_certificate(file: Path | None, now: float) -> list[Attention]:
    """Return the finding that the certificate of this process ends soon. ``now``: seconds since the epoch."""
    if file is None:
        return []
    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
    except (OSError, ValueError) as error:
        return [Attention("look", f"{file}", f"the certificate cannot be read: {error}")]
    ends = certificate.not_valid_after_utc.timestamp()
    if ends - now > CERTIFICATE_DAYS * 86_400:
        return []
    when = text_of_moment(ends)
    if ends <= now:
        return [Attention("fails", f"{file}", f"the certificate has ended on {when} UTC")]
    return [Attention("look", f"{file}", f"the certificate ends on {when} UTC")]


def _linked(finding: StatusFinding, href: str) -> Attention:
    return Attention(finding.level, finding.about, finding.says, href)
