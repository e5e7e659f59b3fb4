"""Records in a file of JSON lines: killed writers, damaged lines, files of earlier versions."""

import asyncio
import json
import os
import signal
import subprocess
import sys

import pytest
from msgspec.structs import replace

from roost.model.record import Step
from roost.records import DamagedRecords, Retention, RunWithAttempts, Search
from roost.records.jsonl import JsonLinesRecords
from support.waiting import patience

OLD_FILE = """\
{"run":{"id":"run-1","request_id":"req-1","project_id":"p","user_id":"u","instances":["i-1","i-2"],"spec":\
{"project_id":"p","image_properties":{"os_distro":"täst"}},"started_at":1.0,"finished_at":1.25,"version":7,"steps":\
[{"name":"hosts","left":10},{"name":"ComputeFilter","left":2}],"refusal":null}}
{"attempt":{"run":"run-1","request_id":"req-1","instance":"i-1","at":1.1,"host":"host-0","cell":"cell1",\
"weight":1.5,"result":"refused","reason":"full"}}
{"attempt":{"run":"run-1","request_id":"req-1","instance":"i-1","at":1.2,"host":"host-1","cell":"cell1",\
"weight":0.5,"result":"claimed","reason":null}}
{"attempt":{"run":"run-1","request_id":"req-1","instance":"i-1","at":8.0,"host":"host-1","cell":"cell1",\
"weight":0.5,"result":"failed","reason":"no image"}}
{"attempt":{"run":"run-1","request_id":"req-1","instance":"i-1","at":8.1,"host":"host-2","cell":"cell1",\
"weight":0.5,"result":"claimed","reason":null}}
"""
"""Lines as they were written before an attempt had one record."""

WRITER = """
import asyncio, sys
from pathlib import Path
from roost.model.record import Attempt, Run
from roost.records import Retention
from roost.records.jsonl import JsonLinesRecords
from roost.records.rows import encoded

async def main():
    records = JsonLinesRecords(Path(sys.argv[1]), Retention(0, 0))
    first = len(await records.last(1_000_000))
    for number in range(first, first + 1_000_000):
        name = f"run-{number}"
        run = Run(id=name, request_id="r", project_id="p", user_id="u", instances=("i",),
                  spec={"padding": "x" * 20_000}, started_at=1.0, finished_at=2.0, version=number)
        attempt = Attempt(run=name, request_id="r", instance="i", at=1.5, host="h", cell="c",
                          weight=1.0, result="pending")
        await records.write([encoded(run)], [attempt])
        print(number, flush=True)

asyncio.run(main())
"""


def test_no_acknowledged_record_is_lost_to_kill_9(using_jsonl, make, write, tmp_path):
    path = tmp_path / "records.jsonl"
    for acknowledge in (3, 17, 40):
        command = [sys.executable, "-c", WRITER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            for _ in range(acknowledge):
                written = int(writer.stdout.readline())
            os.kill(writer.pid, signal.SIGKILL)
            written = max([written, *map(int, writer.stdout.read().split())])
        found = using_jsonl(lambda records: records.last(1_000_000))
        versions = [one.run.version for one in reversed(found)]
        assert versions == list(range(len(versions)))
        assert len(versions) > written
        assert all(len(one.attempts) == 1 for one in found[-written - 1 :])

    last = make(1_000_000)
    using_jsonl(lambda records: write(records, [last]))
    assert using_jsonl(lambda records: records.last(1)) == [last]


def test_a_file_torn_at_any_byte_holds_whole_records_and_takes_more(make, write, tmp_path, monkeypatch):
    """Each byte of a run and its attempt. The next append mends the file; that opening mends it is shown
    for lines of any kind."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    path = tmp_path / "records.jsonl"
    old, new = make(1, tries=1), make(2, tries=0)
    old = RunWithAttempts(replace(old.run, spec={"täst": "\n"}), old.attempts)

    async def use():
        records = JsonLinesRecords(path, Retention(0, 0))
        await write(records, [old])
        whole = path.read_bytes()
        ends = [place for place, byte in enumerate(whole) if byte == ord("\n")]
        assert len(ends) == 2
        for size in range(len(whole) + 1):
            path.write_bytes(whole[:size])
            left = sum(end <= size for end in ends)
            await write(records, [new])
            newest, *older = await records.last(9)
            assert newest == new
            assert older == ([] if left == 0 else [RunWithAttempts(old.run, old.attempts[: left - 1])])
        await records.close()

    asyncio.run(use())


@pytest.mark.parametrize(
    "damage", [b'{"run":{"id":"ru', b"", b"{}", b'{"run":{"id":7}}', b"\xff\xfe", b"\0\0\0\0"]
)
def test_a_damaged_line_is_named_by_its_number_and_never_skipped(using_jsonl, make, write, tmp_path, damage):
    path = tmp_path / "records.jsonl"
    using_jsonl(lambda records: write(records, [make(1)]))
    with path.open("ab") as file:
        file.write(damage + b"\n")
    using_jsonl(lambda records: write(records, [make(2), make(100)]), Retention(0, 1))
    before = path.read_bytes()

    with pytest.raises(DamagedRecords, match=f"{path}, line 4: not a record"):
        using_jsonl(lambda records: records.last(2))
    with pytest.raises(DamagedRecords, match=f"{path}, line 4: not a record"):
        using_jsonl(lambda records: records.trim(now=9.0), Retention(0, 1))
    assert path.read_bytes() == before
    assert using_jsonl(lambda records: records.last(1)) == [make(100)]


def test_a_file_of_an_earlier_version_is_read(using_jsonl, tmp_path):
    (tmp_path / "records.jsonl").write_text(OLD_FILE)
    [found] = using_jsonl(lambda records: records.find(Search(request_id="req-1")))
    assert found.run.spec == {"project_id": "p", "image_properties": {"os_distro": "täst"}}
    assert found.run.steps == (Step("hosts", 10), Step("ComputeFilter", 2))
    assert (found.run.instances, found.run.version, found.run.refusal) == (("i-1", "i-2"), 7, None)
    assert [
        (each.ordinal, each.host, each.result, each.reason, each.at, each.finished_at)
        for each in found.attempts
    ] == [
        (1, "host-0", "refused", "full", 1.1, 1.1),
        (2, "host-1", "failed", "no image", 1.2, 8.0),
        (3, "host-2", "pending", None, 8.1, None),
    ]


def test_lines_are_plain_json_by_kind(using_jsonl, make, write, tmp_path):
    using_jsonl(lambda records: write(records, [make(1, tries=1)]))
    run, attempt = map(json.loads, (tmp_path / "records.jsonl").read_text().splitlines())
    assert run["run"]["request_id"] == "req-1"
    assert attempt["attempt"]["host"] == "host-0"


def test_last_reads_only_the_end_of_the_file(using_jsonl, make, write, tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"not a record\n" * 100)
    using_jsonl(lambda records: write(records, [make(1), make(2), make(100)]))
    assert using_jsonl(lambda records: records.last(1)) == [make(100)]


def test_two_users_of_one_file_see_and_keep_each_others_records(make, write, tmp_path):
    async def use():
        path = tmp_path / "records.jsonl"
        first, second = (JsonLinesRecords(path, Retention(0, 2)) for _ in range(2))
        await asyncio.gather(write(first, [make(1)]), write(second, [make(2)]))
        assert await second.trim(now=9.0) == 0
        await write(first, [make(3)])
        assert await second.trim(now=9.0) == 1
        await write(first, [make(4)])
        found = await second.last(9)
        await first.close()
        await second.close()
        return found

    assert [one.run.id for one in asyncio.run(use())][:2] == ["run-4", "run-3"]


CLOSED_WHILE_LOCKED = """
import asyncio, fcntl, sys
from pathlib import Path
from roost.model.record import Attempt
from roost.records import RecordQueue, Retention
from roost.records.jsonl import JsonLinesRecords

async def main():
    queue = RecordQueue(JsonLinesRecords(path, Retention()), close_seconds=0.05)
    fcntl.flock(other, fcntl.LOCK_EX)
    queue.put([], [Attempt(run="run-1", request_id="r", instance="i", at=1.5, host="h", cell="c",
                           weight=1.0, result="pending")])
    await queue.close()
    assert queue.dropped == 1

path = Path(sys.argv[1])
other = path.open("wb")
asyncio.run(main())
"""
"""Another user has locked the file until the program ends."""


def test_a_write_that_hangs_does_not_keep_the_program_from_ending(tmp_path):
    command = [sys.executable, "-c", CLOSED_WHILE_LOCKED, str(tmp_path / "records.jsonl")]
    assert subprocess.run(command, timeout=patience(30), check=False).returncode == 0
