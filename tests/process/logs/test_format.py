"""Log lines: no value can start a line or carry a control character, and each has the ids of its requests."""

import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from roost.process.logs import RequestIds, new_request_ids, serving
from roost.process.logs.format import SHOWN_REQUESTS, LineFormatter

EVIL = "a\nb\r\x1b[31m\x00\x7f\x85\u2028\u202e\ud800é"
"""Ends of lines, a colour of terminals, other control characters, one that turns text around, half a pair."""

GLOBAL = "req-12345678-1234-4234-a234-123456789abc"


class Collected(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def handler() -> Iterator[Collected]:
    """The handler of the logger ``formatted``, which both libraries write to."""
    structlog.configure(
        processors=[structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    logger = logging.getLogger("formatted")
    found = Collected()
    logger.addHandler(found)
    logger.setLevel(logging.DEBUG)
    yield found
    logger.removeHandler(found)
    structlog.reset_defaults()


def log_evil(monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest's processes cannot send half a pair to each other, so pytest must capture nothing.
    monkeypatch.setattr(logging.getLogger("formatted"), "propagate", False)
    log = structlog.get_logger("formatted")
    log.info("event", path=EVIL, nested=[{EVIL: EVIL}], error=ValueError(EVIL), odd=Odd())
    logging.getLogger("formatted").warning("of a library: %s", EVIL)
    try:
        raise ValueError(EVIL)
    except ValueError:
        log.exception("failed")
        logging.getLogger("formatted").exception(EVIL)


class Odd:
    """Its repr is not on one line."""

    def __repr__(self) -> str:
        return EVIL


def test_text_holds_no_control_character_and_no_line_of_a_value(
    handler: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler.setFormatter(LineFormatter())
    log_evil(monkeypatch)
    assert len(handler.lines) == 4
    for text in handler.lines:
        first, *others = text.split("\n")
        assert "formatted" in first
        for line in (first, *others):
            assert line.isprintable()
        assert all(line.startswith("    ") for line in others)
    assert "Traceback" in handler.lines[2] and "Traceback" in handler.lines[3]


def test_json_holds_no_control_character_and_is_one_line(
    handler: Collected, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler.setFormatter(LineFormatter(as_json=True))
    log_evil(monkeypatch)
    assert len(handler.lines) == 4
    for line in handler.lines:
        assert line.isascii() and line.isprintable()
    event, library, ours, theirs = map(json.loads, handler.lines)
    assert event["path"] == EVIL and event["nested"] == [{EVIL: EVIL}]
    assert event["event"] == "event" and event["level"] == "info" and event["logger"] == "formatted"
    assert library["event"] == f"of a library: {EVIL}"
    for each in (ours, theirs):
        assert each["exception"].startswith("Traceback")


def test_json_takes_values_that_json_lacks(handler: Collected) -> None:
    handler.setFormatter(LineFormatter(as_json=True))
    structlog.get_logger("formatted").info("event", weight=float("nan"), pairs={(1, 2): 3}, hosts=2)
    found = json.loads(handler.lines[0])
    assert (found["weight"], found["pairs"], found["hosts"]) == ("nan", "{(1, 2): 3}", 2)


@pytest.mark.parametrize("as_json", [False, True])
def test_lines_have_the_ids_of_the_request(handler: Collected, as_json: bool) -> None:
    handler.setFormatter(LineFormatter(as_json))
    log = structlog.get_logger("formatted")
    log.info("before")
    with serving(RequestIds("req-1", GLOBAL)):
        log.info("within")
        logging.getLogger("formatted").info("of a library")
    log.info("after")
    assert [("req-1" in line, GLOBAL in line) for line in handler.lines] == [
        (False, False), (True, True), (True, True), (False, False)
    ]  # fmt: skip
    if as_json:
        within = json.loads(handler.lines[1])
        assert (within["request_id"], within["global_request_id"]) == ("req-1", GLOBAL)


def test_a_line_of_a_shared_commit_has_the_ids_of_its_first_requests(handler: Collected) -> None:
    handler.setFormatter(LineFormatter())
    some = [RequestIds(f"req-{number}") for number in range(SHOWN_REQUESTS + 3)]
    with serving(*some):
        structlog.get_logger("formatted").info("committed")
    assert f"req-{SHOWN_REQUESTS - 1} and 3 more]: committed" in handler.lines[0]


def test_another_thread_has_the_ids_of_no_request(handler: Collected) -> None:
    handler.setFormatter(LineFormatter())
    with serving(RequestIds("req-1")):
        thread = threading.Thread(target=structlog.get_logger("formatted").info, args=("elsewhere",))
        thread.start()
        thread.join()
    assert "req-1" not in handler.lines[0]


def test_the_format_of_the_time_is_the_operators(handler: Collected) -> None:
    handler.setFormatter(LineFormatter(date_format="<%Y>"))
    structlog.get_logger("formatted").info("event")
    assert handler.lines[0].startswith("<20")


@pytest.mark.parametrize(
    ("header", "counts"),
    [
        (GLOBAL, True),
        (None, False),
        ("", False),
        (GLOBAL + "\n", False),
        (GLOBAL.upper(), False),
        (GLOBAL.removeprefix("req-"), False),
        (f"{GLOBAL}\nforged", False),
        (f" {GLOBAL}", False),
    ],
)
def test_a_global_id_has_the_form_of_an_id(header: Any, counts: bool) -> None:
    found = new_request_ids(header)
    assert found.of_caller == (header if counts else None)
    assert new_request_ids(found.own).of_caller == found.own
    assert found.onward == (header if counts else found.own)
