"""Checks of the machine: disk, processors, open files, and the process that has the port."""

import resource
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from roost.cli.doctor.check import Deployment, DoctorCheck, DoctorVerdict
from roost.cli.doctor.configuration import check_permissions
from roost.cli.workers import count_processors
from roost.model.errors import OperatorError
from roost.server.workers.listeners import Address, UnixAddress, check_address

LOW_SHARE, LOW_BYTES = 0.1, 1 << 30
"""Share of the disk and bytes; free space below both is a warning."""

LEAST_BYTES = 100 << 20
"""Free bytes below which the check fails: soon nothing can be written."""

CONNECT_SECONDS = 2.0
"""Seconds that a process may take to accept a connection."""

FEW_FILES = 4096
"""Limit of open files below which there is a warning: each connection of a client is an open file."""


def check_disk(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that the disk of a SQLite file has free space. A server's disk cannot be checked from here."""
    if (file := deployment.sqlite_file) is None:
        yield DoctorVerdict("skip", "not checked: the disk of a database server cannot be seen from here")
        return
    folder = file.parent
    if not folder.is_dir():
        yield DoctorVerdict("fail", f"there is no folder {folder}", f"make the folder {folder}")
        return
    yield judge_space(folder, *shutil.disk_usage(folder)[::2])


def judge_space(folder: Path, total: int, free: int) -> DoctorVerdict:
    """Return the verdict on a disk with ``free`` of ``total`` bytes."""
    says = f"the disk of {folder} has {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
    if free < LEAST_BYTES:
        return DoctorVerdict("fail", says, "make space")
    if free < LOW_BYTES and free < total * LOW_SHARE:
        return DoctorVerdict(
            "warn", says, "make space, or keep fewer commits ([ledger] keep_commits, keep_days)"
        )
    return DoctorVerdict("ok", says)


def check_workers(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that there are not more workers than processors."""
    processors = count_processors()
    says = f"{deployment.workers} worker(s) on {processors} processor(s)"
    if deployment.workers > processors:
        yield DoctorVerdict("warn", says, "use --workers auto: more processes than processors are slower")
    else:
        yield DoctorVerdict("ok", says)


def check_files(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that a process may have many connections."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < FEW_FILES:
        says = f"a process of this user may have {limit} open files, so fewer connections"
        yield DoctorVerdict("warn", says, f"set LimitNOFILE={FEW_FILES} or more in the unit (ulimit -n)")
    else:
        yield DoctorVerdict("ok", f"a process may have {limit} open files")


def check_port(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that the port or UNIX socket is free, or that a service has it, which `check_ready` checks."""
    address = deployment.listening.address
    if is_served(address):
        whose = holder(address.port) if isinstance(address, Address) else "a process"
        yield DoctorVerdict("ok", f"{address} is served by {whose}")
        return
    if isinstance(address, UnixAddress):
        folder = address.path.parent
        if folder.is_dir():
            yield DoctorVerdict("ok", f"nothing listens on {address}")
        else:
            yield DoctorVerdict(
                "fail", f"there is no folder {folder} for the socket", f"make the folder {folder}"
            )
        return
    try:
        check_address(*address)
    except OperatorError as error:
        yield DoctorVerdict("fail", str(error), "choose an address of this machine with --host and --port")
        return
    yield DoctorVerdict("ok", f"{address} is free")


def is_served(address: Address | UnixAddress) -> bool:
    """Return whether a process accepts connections at an address."""
    try:
        if isinstance(address, Address):
            with closing(socket.create_connection(address, timeout=CONNECT_SECONDS)):
                return True
        with closing(socket.socket(socket.AF_UNIX)) as trial:
            trial.settimeout(CONNECT_SECONDS)
            trial.connect(str(address.path))
            return True
    except OSError:
        return False


def holder(port: int, proc: Path = Path("/proc")) -> str:
    """Return the processes that listen on a port, as far as this user may see them."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port, proc)}
    found = []
    for folder in sorted(proc.glob("[0-9]*"), key=lambda folder: int(folder.name)):
        try:
            if any(str(each.readlink()) in sockets for each in (folder / "fd").iterdir()):
                name = (folder / "comm").read_text().strip()
                found.append(f"{name} (process {folder.name})")
        except OSError:
            continue  # the process has ended, or belongs to another user
    return ", ".join(found) or "a process that this user may not see"


def _listening(port: int, proc: Path) -> Iterator[str]:
    """Yield the inodes of sockets that listen on a port.

    Source: Linux, proc_net_tcp.txt; state 0A is LISTEN.
    """
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


CHECKS = (
    DoctorCheck("disk", check_disk),
    DoctorCheck("workers", check_workers),
    DoctorCheck("open files", check_files),
    DoctorCheck("permissions", check_permissions),
    DoctorCheck("port", check_port),
)
