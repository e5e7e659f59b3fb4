"""``roost records`` shows the same of both backends."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from roost.cli.main import main
from roost.records import Retention, RunWithAttempts
from roost.records.backend import open_sql_records
from roost.records.jsonl import JsonLinesRecords


class Answer(NamedTuple):
    status: int
    out: str
    err: str


@pytest.fixture
def roost_records(monkeypatch, capsys) -> Callable[..., Answer]:
    """Runs the command with these arguments."""

    def call(*arguments: object) -> Answer:
        monkeypatch.setattr("sys.argv", ["roost", "records", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return Answer(int(end.value.code or 0), out, err)

    return call


@pytest.fixture(params=["sql", "jsonl"])
def data_dir(request, make, write, tmp_path) -> Path:
    """A data directory with the runs 1 to 3, of which run 2 was refused."""

    async def fill() -> None:
        if request.param == "sql":
            records = await open_sql_records(f"sqlite:///{tmp_path / 'records.db'}", Retention())
        else:
            records = JsonLinesRecords(tmp_path / "records.jsonl", Retention())
        await write(records, [make(1), make(2, tries=0), make(3)])
        await records.close()

    asyncio.run(fill())
    return tmp_path


def test_the_last_runs_are_listed(roost_records, data_dir):
    answer = roost_records("--data-dir", data_dir, "--last", 2)
    assert answer.status == 0
    _, newest, refused = answer.out.splitlines()
    assert newest.split()[2:] == ["req-3", "1", "1", "on", "host-1"]
    assert refused.split()[2:] == ["req-2", "1", "refused:", "no", "valid", "host"]


@pytest.mark.parametrize("name", ["req-3", "instance-3-0"])
def test_a_request_or_an_instance_is_found_and_shown_in_full(roost_records, data_dir, name):
    answer = roost_records(name, "--data-dir", data_dir)
    assert answer.status == 0
    for shown in ("run-3", "ComputeFilter", "host-0", "host-1", "line one"):
        assert shown in answer.out


def test_json_has_whole_records(roost_records, data_dir, make):
    answer = roost_records("--data-dir", data_dir, "--refused", "--json")
    assert msgspec.json.decode(answer.out, type=list[RunWithAttempts]) == [make(2, tries=0)]


def test_refused_runs_are_counted_by_themselves(roost_records, data_dir, make):
    answer = roost_records("--data-dir", data_dir, "--refused", "--last", 1, "--json")
    assert msgspec.json.decode(answer.out, type=list[RunWithAttempts]) == [make(2, tries=0)]


def test_an_unknown_name_and_an_empty_directory_are_named(roost_records, data_dir, tmp_path):
    unknown = roost_records("req-9", "--data-dir", data_dir)
    assert unknown.status == 2
    assert f"{data_dir} has no record of a request or an instance req-9" in unknown.err
    (tmp_path / "empty").mkdir()
    empty = roost_records("--data-dir", tmp_path / "empty")
    assert empty.status == 2
    assert "contains neither records.db nor records.jsonl" in empty.err
