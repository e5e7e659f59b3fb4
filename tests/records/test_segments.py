"""Records in several segments: what is read, what goes, who else is at them, kills between two steps."""

import asyncio
import os

import msgspec
import pytest
from structlog.testing import capture_logs

from roost.model.record import Settings
from roost.records import DamagedRecords, RecordsUnavailable, Retention, Search, segments
from roost.records.archive import archive, restore
from roost.records.jsonl import JsonLinesRecords
from roost.records.rows import encoded
from roost.records.segments import Segments

DAY = 86_400
BROKEN = b"not a record\n"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A segment is closed after each write."""
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 1)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records.jsonl"


def closed(path):
    return sorted(each for each in path.parent.iterdir() if each.name.startswith(f"{path.name}."))


def fill(using_jsonl, write, made):
    async def use(records):
        for each in made:
            await write(records, [each])

    using_jsonl(use)


def close_at(path, now):
    """Close the segment in use at a time."""
    file = Segments(path)
    with file.changing():
        file.close_segment(now)
    file.close()


def fill_days(using_jsonl, write, monkeypatch, made, path):
    """Close one segment for each run, in the second after its start."""
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 1 << 30)
    for each in made:
        fill(using_jsonl, write, [each])
        close_at(path, each.run.started_at + 1)


def test_a_search_goes_through_all_segments_and_reads_none_before_the_last_it_needs(
    using_jsonl, make, write, path
):
    made = [make(number) for number in range(5)]
    fill(using_jsonl, write, made)
    assert [each.name.split(".")[2::2] for each in closed(path)] == [[f"{n:06d}", "1"] for n in range(1, 6)]
    assert using_jsonl(lambda records: records.last(9)) == made[::-1]
    assert using_jsonl(lambda records: records.find(Search(request_id="req-1"))) == [made[1]]

    fill(using_jsonl, write, [make(100)])
    for each in closed(path)[:4]:
        each.write_bytes(BROKEN)
    assert using_jsonl(lambda records: records.last(1)) == [make(100)]
    with pytest.raises(DamagedRecords, match=f"{closed(path)[3]}, line 1: not a record"):
        using_jsonl(lambda records: records.last(3))


def test_lines_of_a_run_may_be_in_several_segments(using_jsonl, make, path):
    whole = make(1, tries=3)

    async def use(records):
        await records.write([], whole.attempts[:1])
        await records.write([encoded(whole.run)], [])
        await records.write([], whole.attempts[1:])
        await records.write([encoded(whole.run)], whole.attempts)
        return await records.last(9)

    assert using_jsonl(use) == [whole]
    assert len(closed(path)) == 4


@pytest.mark.parametrize(
    ("retention", "kept"),
    [
        (Retention(3, 0), 3),
        (Retention(0, 2), 2),
        (Retention(3, 1), 1),
        (Retention(1, 2), 1),
        (Retention(0, 0), 6),
    ],
)
def test_a_trim_removes_whole_segments_and_reads_only_the_one_in_use(
    using_jsonl, make, write, path, monkeypatch, retention, kept
):
    made = [make(number, at=float(number * DAY)) for number in range(6)]
    fill_days(using_jsonl, write, monkeypatch, made, path)
    saved = [each.read_bytes() for each in closed(path)]
    for each in closed(path):
        each.write_bytes(BROKEN)
    assert using_jsonl(lambda records: records.trim(now=6.0 * DAY), retention) == 6 - kept
    assert using_jsonl(lambda records: records.trim(now=6.0 * DAY), retention) == 0

    assert len(closed(path)) == kept
    for each, content in zip(closed(path), saved[6 - kept :], strict=True):
        each.write_bytes(content)
    assert using_jsonl(lambda records: records.last(9)) == made[::-1][:kept]

    path.write_bytes(BROKEN)
    with pytest.raises(DamagedRecords, match=f"{path}, line 1: not a record"):
        using_jsonl(lambda records: records.trim(now=6.0 * DAY), retention)


def test_a_trim_of_the_segment_in_use_leaves_the_ends_of_older_runs(
    using_jsonl, make, write, path, monkeypatch
):
    """A restored run may be older than what was recorded before it."""
    first, old, new = make(5, at=5.0 * DAY), make(1), make(6, at=5.0 * DAY)
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 1 << 30)
    using_jsonl(lambda records: records.write([encoded(first.run)], first.attempts[:1]))
    close_at(path, 5.0 * DAY + 1)

    async def use(records):
        await write(records, [old, new])
        await records.write([], first.attempts[1:])
        assert await records.trim(now=5.5 * DAY) == 1
        return await records.last(9)

    assert using_jsonl(use, Retention(2, 0)) == [new, first]
    assert len(closed(path)) == 1


def test_a_trim_closes_a_segment_whose_first_run_is_a_day_old(using_jsonl, make, write, path, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 1 << 30)
    made = [make(1, at=1000.0), make(2, at=80_000.0)]
    fill(using_jsonl, write, made)
    for now, expected in ((DAY + 999.0, 0), (DAY + 1000.0, 1), (DAY + 2000.0, 1)):
        assert using_jsonl(lambda records, now=now: records.trim(now=now)) == 0
        assert len(closed(path)) == expected
    assert closed(path)[0].name == f"{path.name}.000001.19700102T001640Z.2"
    assert using_jsonl(lambda records: records.last(9)) == made[::-1]


def test_a_single_file_becomes_the_oldest_segment(using_jsonl, make, write, path, monkeypatch):
    old, new = [make(1), make(2)], [make(3), make(4)]
    with monkeypatch.context() as patch:
        patch.setattr(segments, "SEGMENT_BYTES", 1 << 30)
        fill(using_jsonl, write, old)
    content = path.read_bytes()
    fill(using_jsonl, write, new)
    oldest, _ = closed(path)
    assert oldest.read_bytes().startswith(content) and oldest.name.endswith(".3")
    assert using_jsonl(lambda records: records.last(9)) == [*new[::-1], *old[::-1]]


def test_each_segment_has_the_settings_of_its_runs(make, path):
    """Two processes at one place: each learns under the lock that the other has closed the segment."""
    settings = Settings(digest="d", roost="1", options={"a": 1}, filters=())
    runs = [msgspec.structs.replace(make(number).run, settings=settings) for number in range(6)]

    async def use():
        users = [JsonLinesRecords(path, Retention(0, 2)) for _ in range(2)]
        for number, run in enumerate(runs):
            await users[number // 2 % 2].write([encoded(run)], [])
        assert await users[0].trim(now=9.0) == 4
        for user in users:
            await user.close()
        fresh = JsonLinesRecords(path, Retention(0, 2))
        found = await fresh.last(9)
        await fresh.close()
        return [each.run for each in found]

    assert asyncio.run(use()) == runs[:3:-1]


def test_a_reader_goes_on_while_segments_are_closed_and_removed(make, write, path):
    made = [make(number) for number in range(6)]

    async def use():
        reader, writer = (
            JsonLinesRecords(path, Retention(0, 0)),
            JsonLinesRecords(path, Retention(0, 3)),
        )
        await write(writer, made[:1])
        lines = Segments(path)
        reading = lines.backwards()
        next(reading)
        for each in made[1:]:
            await write(writer, [each])
        assert await writer.trim(now=9.0) == 3
        rest = [*reading]
        lines.close()
        found = await reader.last(9)
        for user in (reader, writer):
            await user.close()
        return rest, found

    rest, found = asyncio.run(use())
    assert len(rest) == 2  # of the three lines in a segment that was open when it was removed
    assert found == made[:2:-1]


def test_a_kill_between_the_two_steps_of_closing_shows_nothing_twice(
    using_jsonl, make, write, path, monkeypatch
):
    made = [make(1), make(2)]
    fill(using_jsonl, write, made[:1])
    with monkeypatch.context() as patch:
        patch.setattr(segments, "SEGMENT_BYTES", 1 << 30)
        fill(using_jsonl, write, made[1:])
    os.link(path, path.with_name(f"{path.name}.000002.19700101T000009Z.1"))

    assert len(list(lines_at(path))) == 6
    assert using_jsonl(lambda records: records.last(9)) == made[::-1]
    fill(using_jsonl, write, [make(3)])
    assert [each.name.split(".")[2::2] for each in closed(path)] == [["000001", "1"], ["000002", "2"]]
    assert using_jsonl(lambda records: records.last(9)) == [make(3), *made[::-1]]


def lines_at(path):
    file = Segments(path)
    yield from file.backwards()
    file.close()


def test_a_segment_that_cannot_be_closed_stays_in_use_and_records_go_on(
    using_jsonl, make, write, path, monkeypatch
):
    def refuse(source, target):
        raise OSError(1, "no links here")

    tried = []
    with monkeypatch.context() as patch, capture_logs() as logged:
        patch.setattr(os, "link", lambda *paths: tried.append(paths) or refuse(*paths))
        fill(using_jsonl, write, [make(1)])
    assert len(tried) == len(logged) == 1
    assert logged[0]["reason"] == f"cannot set aside records file {path}: no links here"
    assert closed(path) == []
    fill(using_jsonl, write, [make(2)])
    assert len(closed(path)) == 1
    assert using_jsonl(lambda records: records.last(9)) == [make(2), make(1)]


def test_archived_runs_leave_all_segments_and_come_back(using_jsonl, make, write, path, tmp_path):
    made = [make(number) for number in range(1, 6)]
    fill(using_jsonl, write, [*made[:2], make(7)])

    async def last_two(records):
        await write(records, made[2:])

    using_jsonl(last_two)
    old = tmp_path / "old.jsonl.gz"
    assert using_jsonl(lambda records: archive(records, old, until=4.0)) == 3
    assert using_jsonl(lambda records: records.last(9)) == [*made[:2:-1], make(7)]
    assert [each.name.split(".")[2::2] for each in closed(path)] == [["000003", "1"], ["000004", "2"]]

    assert using_jsonl(lambda records: restore(records, old)) == 3
    found = using_jsonl(lambda records: records.last(9))
    assert found == [*made[2::-1], *made[:2:-1], make(7)]


def test_the_number_of_a_line_in_a_segment_that_is_gone_is_no_crash(path):
    file = Segments(path)
    file.append(BROKEN)
    [(place, line)] = file.backwards()
    assert line == BROKEN[:-1]
    with file.changing():
        file.remove(file.closed())
    file.close()
    with pytest.raises(RecordsUnavailable, match="cannot read records file"):
        place.number()
