"""The file of lines: tearing it anywhere, other processes at it, errors."""

import errno
import fcntl
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from roost.records import RecordsUnavailable, line_reader
from roost.records import lines as lines_module
from roost.records.line_reader import count_lines, line_number, lines_backwards, lines_forwards
from roost.records.lines import LineFile

LINES = [b'{"a":1}', '{"ä":"\\n"}'.encode(), b"{}", b'{"b":[1,2,{"c":"}"}]}']


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lines"


def read(path):
    file = LineFile(path)
    try:
        return lines_of(path)
    finally:
        file.close()


def lines_of(path):
    with path.open("rb") as file:
        forwards = list(lines_forwards(file))
        backwards = list(lines_backwards(file))
        assert [line for _, line in backwards] == forwards[::-1]
        assert [line_number(file, at) for at, _ in backwards] == list(range(len(forwards), 0, -1))
        assert count_lines(file, b"{") == sum(
            line.startswith(b"{") for line in path.read_bytes().split(b"\n")
        )
        return forwards


def append(path, line):
    file = LineFile(path)
    file.append(line + b"\n")
    file.close()


def test_torn_at_any_byte_the_file_keeps_every_whole_line(path):
    whole = b"".join(line + b"\n" for line in LINES)
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        kept = [
            line
            for place, line in enumerate(LINES)
            if size >= sum(len(before) + 1 for before in LINES[:place]) + len(line)
        ]
        assert read(path) == kept, f"torn after {size} bytes"
        path.write_bytes(whole[:size])
        append(path, b'{"next":1}')
        assert read(path) == [*kept, b'{"next":1}'], f"torn after {size} bytes"


def test_a_tear_while_the_file_is_open_is_mended_by_the_next_append(path):
    file = LineFile(path)
    file.append(LINES[0] + b"\n")
    with path.open("ab") as other:
        other.write(b'{"torn')
    assert lines_of(path) == LINES[:1]
    with capture_logs() as logged:
        file.append(LINES[1] + b"\n")
    file.close()
    assert [(each["file"], each["bytes"]) for each in logged] == [(str(path), 6)]
    assert read(path) == LINES[:2]


@given(
    lines=st.lists(
        st.sampled_from([b"{", b""]).flatmap(
            lambda start: st.binary(max_size=40).map(lambda line: start + line.replace(b"\n", b""))
        ),
        max_size=20,
    ),
    block=st.integers(1, 50),
)
def test_lines_read_alike_in_both_directions_whatever_the_block(tmp_path_factory, lines, block):
    path = tmp_path_factory.mktemp("lines") / "lines"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_reader, "BLOCK", block)
        assert read(path) == lines


@given(block=st.integers(1, 20), torn=st.integers(1, 30))
def test_a_tear_longer_than_a_block_is_mended(tmp_path_factory, block, torn):
    path = tmp_path_factory.mktemp("lines") / "lines"
    path.write_bytes(LINES[0] + b"\n" + b"x" * torn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "BLOCK", block)
        assert read(path) == LINES[:1]
    assert path.stat().st_size == len(LINES[0]) + 1


def test_a_file_replaced_by_another_process_is_followed(path):
    first, second = LineFile(path), LineFile(path)
    first.append(b'{"old":1}\n{"kept":1}\n')
    with first.changing():
        first.replace(line for line in lines_of(path) if b"kept" in line)
    second.append(b'{"new":1}\n')
    first.append(b'{"newer":1}\n')
    first.close()
    second.close()
    assert read(path) == [b'{"kept":1}', b'{"new":1}', b'{"newer":1}']


def test_a_file_moved_away_is_begun_anew(path):
    file = LineFile(path)
    file.append(b'{"old":1}\n')
    path.rename(path.with_suffix(".1"))
    file.append(b'{"new":1}\n')
    file.close()
    assert read(path) == [b'{"new":1}']
    assert read(path.with_suffix(".1")) == [b'{"old":1}']


def test_an_append_waits_for_who_else_changes_the_file(path):
    file = LineFile(path)
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        appending = threading.Thread(target=file.append, args=(b"{}\n",))
        appending.start()
        appending.join(0.05)
        assert appending.is_alive()
        assert path.read_bytes() == b""
        fcntl.flock(other, fcntl.LOCK_UN)
        appending.join(60)
    file.close()
    assert read(path) == [b"{}"]


def test_replacing_keeps_the_mode_and_leaves_no_other_file(path):
    file = LineFile(path)
    file.append(b"{}\n{}\n")
    path.chmod(0o604)
    with file.changing():
        file.replace([b"{}"])
    file.close()
    assert path.stat().st_mode & 0o777 == 0o604
    assert [found.name for found in path.parent.iterdir()] == ["lines"]


def test_a_replacement_that_fails_changes_nothing(path):
    def fail():
        yield b'{"half":1}'
        raise ValueError

    file = LineFile(path)
    file.append(b"{}\n")
    with pytest.raises(ValueError), file.changing():
        file.replace(fail())
    file.close()
    assert read(path) == [b"{}"]
    assert [found.name for found in path.parent.iterdir()] == ["lines"]


def test_a_full_disk_is_reported_and_leaves_no_part_of_the_lines(path, monkeypatch):
    file = LineFile(path)
    file.append(b'{"first":1}\n')
    written = os.write
    left = [3]

    def write(descriptor, data):
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(descriptor, data[: left.pop()])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        with pytest.raises(RecordsUnavailable, match=f"cannot write records file {path}: No space left"):
            file.append(b'{"second":1}\n')
    assert path.read_bytes() == b'{"first":1}\n'
    file.append(b'{"third":1}\n')
    file.close()
    assert read(path) == [b'{"first":1}', b'{"third":1}']


def test_a_folder_is_no_file_of_lines(tmp_path):
    with pytest.raises(RecordsUnavailable, match=f"cannot open records file {tmp_path}: Is a directory"):
        LineFile(tmp_path)
