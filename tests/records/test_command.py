"""``roost records`` shows the same of both backends."""

import asyncio
import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from roost.cli.main import main
from roost.cli.record_sources import Server
from roost.model.reasons import HostNames, Miss, Reasons, Relaxation, Stage, WeighedHost, WeigherNumber
from roost.model.spec import Destination, Selection
from roost.records import Retention, RunWithAttempts, Search
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
        command = [] if str(arguments[0]).endswith("-records") else ["records"]
        monkeypatch.setattr("sys.argv", ["roost", *command, *map(str, arguments)])
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


def test_a_run_that_claimed_nothing_and_one_whose_builds_failed(roost_records, make, write, tmp_path):
    """A run of shadow mode has destinations and no attempts. It used to be shown as "0 on"."""
    shadow, failed = make(1, tries=0), make(2, tries=1)
    selected = Selection("host-7", "host-7", "cell1", {}, {}, 1.0)
    destinations = (Destination("run-1", "instance-1-0", selected),)
    shadow = replace(shadow, run=replace(shadow.run, refusal=None, destinations=destinations))
    failed = replace(failed, attempts=[replace(each, result="failed") for each in failed.attempts])

    async def fill() -> None:
        records = JsonLinesRecords(tmp_path / "records.jsonl", Retention())
        await write(records, [shadow, failed])
        await records.close()

    asyncio.run(fill())
    _, second, first = roost_records("--data-dir", tmp_path).out.splitlines()
    assert first.endswith("chose host-7 for 1; claimed nothing")
    assert second.endswith("placed none")


@pytest.mark.parametrize("name", ["req-3", "instance-3-0"])
def test_a_request_or_an_instance_is_found_and_shown_in_full(roost_records, data_dir, name):
    answer = roost_records(name, "--data-dir", data_dir)
    assert answer.status == 0
    for shown in ("run-3", "ComputeFilter", "host-0", "host-1", "line one"):
        assert shown in answer.out


def test_reasons_and_weights_are_shown(roost_records, make, write, tmp_path):
    funnel = (
        Stage(kind="query", name="VCPU", hosts=3, trees=4, hosts_alone=3),
        Stage(kind="filter", name="OwnFilter", hosts=2, removed=HostNames(("host-[0-1]",))),
    )
    found = Reasons(
        sentence="5 hosts are known; none has room",
        public="no host has room",
        hosts=5,
        trees=6,
        stages=funnel,
        misses=tuple(
            Miss(host=f"near-{n}", kind="query", name="VCPU", text="lacks 1 VCPU", distance=0.1)
            for n in range(7)
        ),
        relaxations=(
            Relaxation(kind="amount", name="VCPU", text="VCPU 8 -> 7", distance=0.1, host="host-9"),
        ),
        complete=False,
    )
    weighed = WeighedHost("host-7", -1.25, (WeigherNumber("RAMWeigher", 2048.0, 0.5, -2.5),))
    other = WeighedHost("host-8", -0.0, (WeigherNumber("RAMWeigher", 0.0, 0.0, -2.5),))
    whole = make(1)
    whole = replace(whole, run=replace(whole.run, reasons=found, weighed=(weighed, other)))

    async def fill() -> None:
        records = JsonLinesRecords(tmp_path / "records.jsonl", Retention())
        await write(records, [whole])
        await records.close()

    asyncio.run(fill())
    lines = [line.split() for line in roost_records("req-1", "--data-dir", tmp_path).out.splitlines()]
    for shown in (
        "5 hosts are known; none has room",
        "known 5 ██████████ 6",
        "query VCPU 3 2 ████ 4 2 3",
        "filter OwnFilter 2 0 host-[0-1]",
        "near-4 lacks 1 VCPU",
        "and 2 more",
        "VCPU 8 -> 7 (it would go to host-9)",
        "The time was over before all changes were tried.",
        "weigher × multiplier host-7 host-8",
        "weight -1.250 -0.000",
        "RAMWeigher × -2.5 2,048 → 0.500 0 → 0.000",
    ):
        assert shown.split() in lines, shown
    assert ["near-5", "lacks", "1", "VCPU"] not in lines


def test_json_has_whole_records(roost_records, data_dir, make):
    answer = roost_records("--data-dir", data_dir, "--refused", "--json")
    assert msgspec.json.decode(answer.out, type=list[RunWithAttempts]) == [make(2, tries=0)]


def test_refused_runs_are_counted_by_themselves(roost_records, data_dir, make):
    answer = roost_records("--data-dir", data_dir, "--refused", "--last", 1, "--json")
    assert msgspec.json.decode(answer.out, type=list[RunWithAttempts]) == [make(2, tries=0)]


def test_an_unknown_name_and_an_empty_directory_are_named(roost_records, data_dir, tmp_path):
    unknown = roost_records("req-9", "--data-dir", data_dir)
    assert unknown.status == 2
    assert "there is no record of a request, an instance or a run req-9" in unknown.err
    (tmp_path / "empty").mkdir()
    empty = roost_records("--data-dir", tmp_path / "empty")
    assert empty.status == 2
    assert "contains neither records.db nor records.jsonl" in empty.err


def found(answer: Answer) -> list[str]:
    assert answer.status == 0, answer.err
    return [each.run.id for each in msgspec.json.decode(answer.out, type=list[RunWithAttempts])]


def test_runs_are_searched_by_options(roost_records, data_dir):
    def search(*options: object) -> list[str]:
        return found(roost_records("--data-dir", data_dir, "--json", *options))

    assert search("--host", "host-1") == ["run-3", "run-1"]
    assert search("--host", "host-1", "--result", "refused") == []
    assert search("--since", "1970-01-01T00:00:02", "--until", "1970-01-01T00:00:03") == ["run-2"]
    assert search("--project", "project", "--user", "user", "--last", 1) == ["run-3"]
    assert search("run-1") == ["run-1"]


def test_records_are_those_that_the_configuration_names(roost_records, data_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    backend = "jsonl" if (data_dir / "records.jsonl").exists() else "sql"
    file = tmp_path / "roost.conf"
    file.write_text(
        f"[records]\nbackend = {backend}\nconnection = sqlite:///{data_dir}/records.db\n"
        f"path = {data_dir}/records.jsonl\n"
    )
    assert found(roost_records("--config-file", file, "--json")) == ["run-3", "run-2", "run-1"]
    missing = roost_records("--json")
    assert missing.status == 2
    assert "roost-records.sqlite does not exist: name the records by" in missing.err
    both = roost_records("--data-dir", data_dir, "--url", "http://roost")
    assert "--data-dir and --url name different records" in both.err


@pytest.fixture
def two_runs_old(monkeypatch) -> float:
    """The age in days that two of the runs have. The clock stands still."""
    monkeypatch.setattr(time, "time", lambda: 1e9)
    return (1e9 - 2.5) / 86_400


def test_old_runs_go_to_an_archive_and_come_back(roost_records, data_dir, tmp_path, make, two_runs_old):
    everything = roost_records("--data-dir", data_dir, "--json").out
    file = tmp_path / "old.jsonl.gz"
    moved = roost_records("archive-records", "--data-dir", data_dir, "--older-than", two_runs_old, file)
    assert moved.out == f"2 runs are in {file}\n"
    assert found(roost_records("--data-dir", data_dir, "--json")) == ["run-3"]
    archived = roost_records("--archive", file, "--json")
    assert msgspec.json.decode(archived.out, type=list[RunWithAttempts]) == [make(2, tries=0), make(1)]
    assert found(roost_records("--archive", file, "--refused", "--json")) == ["run-2"]

    again = roost_records("archive-records", "--data-dir", data_dir, "--older-than", two_runs_old, file)
    assert (again.status, f"{file} is there already" in again.err) == (2, True)
    nothing = roost_records(
        "archive-records", "--data-dir", data_dir, "--older-than", two_runs_old, f"{file}.2"
    )
    assert nothing.out == "no run is that old; no file was made\n"

    back = roost_records("restore-records", "--data-dir", data_dir, file)
    assert back.out == f"2 runs of {file} are in the records\n"
    assert roost_records("restore-records", "--data-dir", data_dir, file).status == 0
    restored = msgspec.json.decode(roost_records("--data-dir", data_dir, "--json").out)
    assert sorted(restored, key=str) == sorted(msgspec.json.decode(everything), key=str)
    assert [each["run"]["id"] for each in restored] == ["run-2", "run-1", "run-3"]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text[:-20], "after line"),
        (lambda text: gzip.compress(gzip.decompress(text) + b"{}\n"), "line 3: not a run"),
        (lambda text: b"no gzip", "cannot read archive"),
    ],
)
def test_a_damaged_archive_is_named_and_nothing_of_it_is_restored(
    roost_records, data_dir, tmp_path, damage, says, two_runs_old
):
    file = tmp_path / "old.jsonl.gz"
    roost_records("archive-records", "--data-dir", data_dir, "--older-than", two_runs_old, file)
    file.write_bytes(damage(file.read_bytes()))
    answer = roost_records("restore-records", "--data-dir", data_dir, file)
    assert (answer.status, str(file) in answer.err, says in answer.err) == (2, True, True), answer.err
    assert found(roost_records("--data-dir", data_dir, "--json")) == ["run-3"]


def test_records_are_read_from_a_server_by_page(make, monkeypatch):
    made = [make(number) for number in range(5, 0, -1)]
    asked: list[dict[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(dict(request.url.params))
        assert request.headers["x-auth-token"] == "secret"
        first = 0 if "marker" not in request.url.params else 3
        page = made[first : first + 3]
        body = {"records": page, "next": page[-1].run.id if first == 0 else None}
        return httpx.Response(200, content=msgspec.json.encode(body))

    async def read() -> list[RunWithAttempts]:
        headers = {"x-auth-token": "secret"}
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer), headers=headers) as client:
            return await Server(client, "http://roost/").find(Search(host="h", refused=True), 9)

    assert asyncio.run(read()) == made
    assert asked == [
        {"host": "h", "refused": "true", "limit": "9"},
        {"host": "h", "refused": "true", "limit": "6", "marker": "run-3"},
    ]


def test_a_server_that_is_not_there_is_named(roost_records):
    answer = roost_records("--url", "http://127.0.0.1:9")
    assert (answer.status, "http://127.0.0.1:9/v1/scheduler/records: ConnectError" in answer.err) == (2, True)
