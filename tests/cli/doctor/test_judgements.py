"""What the checks say of settings, clocks and disks, without the world around them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.cli.doctor import status_of
from roost.cli.doctor.check import Deployment, DoctorCheck, DoctorFinding, DoctorVerdict, NotKnown, run_checks
from roost.cli.doctor.configuration import judge_clock
from roost.cli.doctor.database import judge_mariadb, judge_postgresql
from roost.cli.doctor.machine import judge_space
from roost.cli.listen_options import ListenOptions
from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.server.workers.listeners import Address

POSTGRESQL = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "standby": "off",
    "server_encoding": "UTF8",
    "max_connections": "100",
}
MARIADB = {
    "innodb_flush_log_at_trx_commit": "1",
    "read_only": "OFF",
    "wsrep_on": "OFF",
    "max_connections": "151",
}
GALERA = {
    **MARIADB,
    "wsrep_on": "ON",
    "wsrep_cluster_status": "Primary",
    "wsrep_ready": "ON",
    "wsrep_local_state_comment": "Synced",
    "wsrep_cluster_size": "3",
    "innodb_autoinc_lock_mode": "2",
}


@pytest.mark.parametrize(
    ("setting", "level", "said"),
    [
        ({"fsync": "off"}, "fail", "set fsync = on"),
        ({"synchronous_commit": "off"}, "fail", "set synchronous_commit = on"),
        ({"full_page_writes": "off"}, "fail", "set full_page_writes = on"),
        ({"standby": "on"}, "fail", "connect to the primary"),
        ({"server_encoding": "SQL_ASCII"}, "fail", "ENCODING 'UTF8'"),
        ({"max_connections": "15"}, "warn", "set max_connections to 16 or more"),
    ],
)
def test_settings_of_postgresql(setting: dict[str, str], level: str, said: str) -> None:
    assert list(judge_postgresql(POSTGRESQL, 2)) == []
    [verdict] = judge_postgresql({**POSTGRESQL, **setting}, 2)
    assert verdict.level == level
    assert said in verdict.change


@pytest.mark.parametrize(
    ("around", "setting", "level", "said"),
    [
        (MARIADB, {"innodb_flush_log_at_trx_commit": "2"}, "fail", "the machine loses its last commits"),
        (GALERA, {"innodb_flush_log_at_trx_commit": "0"}, "warn", "this node loses its last commits"),
        (MARIADB, {"read_only": "ON"}, "fail", "read-only"),
        (MARIADB, {"max_connections": "10"}, "warn", "max_connections is 10"),
        (GALERA, {"wsrep_cluster_status": "non-Primary"}, "fail", "wsrep_cluster_status is non-Primary"),
        (GALERA, {"wsrep_ready": "OFF"}, "fail", "wsrep_ready is OFF"),
        (GALERA, {"wsrep_local_state_comment": "Joined"}, "warn", "Joined, not Synced"),
        (GALERA, {"wsrep_cluster_size": "2"}, "warn", "2 nodes"),
        (GALERA, {"innodb_autoinc_lock_mode": "1"}, "warn", "innodb_autoinc_lock_mode is 1"),
    ],
)
def test_settings_of_mariadb(around: dict[str, str], setting: dict[str, str], level: str, said: str) -> None:
    assert list(judge_mariadb(around, 1)) == []
    [verdict] = judge_mariadb({**around, **setting}, 1)
    assert (verdict.level, said in verdict.says) == (level, True), verdict
    assert verdict.change


def test_clocks_and_disks() -> None:
    assert judge_clock("x", -4.0).level == "ok"
    assert judge_clock("x", 60.0)[:2] == ("warn", "the clock of x is 60 s ahead")
    assert judge_clock("x", -60.0)[:2] == ("warn", "the clock of x is 60 s behind")
    gib = 1 << 30
    levels = [judge_space(Path("/x"), 100 * gib, free).level for free in (50 * gib, gib // 2, gib // 20)]
    assert levels == ["ok", "warn", "fail"]
    assert judge_space(Path("/x"), gib, gib // 2).level == "ok", "half of a small disk"


def test_each_check_is_made_whatever_another_one_does() -> None:
    def well(deployment: Deployment) -> Iterator[DoctorVerdict]:
        yield DoctorVerdict("ok", "well at mysql://user:secret@host/db")

    def unwell(deployment: Deployment) -> Iterator[DoctorVerdict]:
        raise OperatorError("no such thing")

    def unknown(deployment: Deployment) -> Iterator[DoctorVerdict]:
        raise NotKnown("the database cannot be opened")

    def broken(deployment: Deployment) -> Iterator[DoctorVerdict]:
        raise LookupError("a defect")

    checks = [DoctorCheck(each.__name__, each) for each in (unwell, unknown, broken, well)]
    found = list(run_checks(checks, Deployment(Source(), ListenOptions(Address("127.0.0.1", 1), None))))
    assert [(each.check, each.level) for each in found] == [
        ("unwell", "fail"),
        ("unknown", "skip"),
        ("broken", "fail"),
        ("well", "ok"),
    ]
    assert "LookupError: a defect" in found[2].says
    assert "secret" not in found[3].says
    assert status_of(found) == 2
    assert status_of([found[3], DoctorFinding("x", "warn", "")]) == 1
    assert status_of([found[3], found[1]]) == 0
