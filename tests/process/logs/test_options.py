"""Options of logging under oslo.log's names: what they do, and what values are refused."""

import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

from roost.model.errors import OperatorError
from roost.placement.options import read_options, unsupported_options
from roost.process.logs import ACCESS_LOGGER, LogOptions, configure_logs, logging_config
from roost.process.logs.configuration import QUIET
from roost.process.option_source import Setting, Source
from support.waiting import patience

WRITER = """
import logging, sys
import structlog
from roost.process.logs import LogOptions, configure_logs
from roost.process.option_source import Setting, Source

settings = tuple(Setting("DEFAULT", *setting.split("=", 1)) for setting in sys.argv[1:])
configure_logs(Source(settings=settings).read(LogOptions))
log = structlog.get_logger("roost.some")
for line in sys.stdin:
    log.warning(line.strip())
    log.debug("detail of " + line.strip())
    logging.getLogger("roost.ledger").info("ledger " + line.strip())
    logging.getLogger("urllib3.connectionpool").info("library " + line.strip())
    logging.getLogger("httpcore.http11").debug("headers " + line.strip())
    structlog.get_logger("roost.access").info("request")
    print("logged", flush=True)
"""


def start(*settings: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, *settings],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def log(text: str, *settings: str) -> tuple[int, str]:
    """Log one text in a process with these settings; return its exit status and standard error."""
    process = start(*settings)
    _, stderr = process.communicate(f"{text}\n", timeout=patience(120))
    return process.returncode, stderr


def options(**settings: str) -> LogOptions:
    chosen = tuple(Setting("DEFAULT", name, value) for name, value in settings.items())
    return read_options(Source((), chosen)).logs


def test_without_options_warnings_go_to_standard_error() -> None:
    status, stderr = log("first")
    assert status == 0
    [line] = stderr.splitlines()
    assert line.endswith("roost.some: first")
    assert options() == LogOptions()


def test_debug_shows_all_but_what_libraries_have_to_say() -> None:
    _, stderr = log("first", "debug=true")
    assert [line.split(": ", 1)[1] for line in stderr.splitlines()] == [
        "first",
        "detail of first",
        "ledger first",
    ]


def test_levels_are_set_by_logger_and_no_level_lets_headers_through() -> None:
    levels = "default_log_levels=roost.ledger=info, urllib3=INFO,httpcore=DEBUG"
    _, stderr = log("first", levels)
    assert [line.split(": ", 1)[1] for line in stderr.splitlines()] == [
        "first",
        "ledger first",
        "library first",
    ]
    _, stderr = log("first", "debug=true", "default_log_levels=roost.ledger=INFO")
    assert "headers" not in stderr


def test_access_lines_are_an_option_of_their_own() -> None:
    _, stderr = log("first", "access_log=true")
    assert [line.split(": ", 1)[1] for line in stderr.splitlines()] == ["first", "request"]
    _, stderr = log("first", "debug=true")
    assert ACCESS_LOGGER not in stderr


def test_json(tmp_path: Path) -> None:
    _, stderr = log("first", "use_json=true")
    found = json.loads(stderr)
    assert found["event"] == "first" and found["logger"] == "roost.some" and found["level"] == "warning"


def test_a_file_gets_the_lines_and_is_opened_anew_after_a_rotation(tmp_path: Path) -> None:
    file, moved = tmp_path / "roost.log", tmp_path / "roost.log.1"
    process = start(f"log_dir={tmp_path}")
    assert process.stdin is not None and process.stdout is not None
    try:
        for text in ("before", "after"):
            process.stdin.write(f"{text}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "logged\n"
            if text == "before":
                file.rename(moved)
        _, stderr = process.communicate(timeout=patience(120))
    finally:
        process.kill()
        process.wait()
    assert stderr == ""
    assert moved.read_text().endswith("before\n") and file.read_text().endswith("after\n")


def test_standard_error_can_get_the_lines_of_a_file_too(tmp_path: Path) -> None:
    _, stderr = log("first", f"log_file={tmp_path}/some.log", "use_stderr=true")
    assert stderr == (tmp_path / "some.log").read_text() != ""


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("default_log_levels=roost=LOUD", "'roost=LOUD'"),
        ("default_log_levels=roost", "'roost'"),
        ("default_log_levels==INFO", "'=INFO'"),
        ("syslog_log_facility=LOG_NOWHERE", "'LOG_NOWHERE'"),
        ("log_date_format=%Y%n", "'%Y%n'"),
        ("use_json=perhaps", "perhaps"),
    ],
)
def test_a_value_that_cannot_work_is_named(setting: str, named: str) -> None:
    name, value = setting.split("=", 1)
    with pytest.raises(OperatorError, match=re.escape(named)):
        options(**{name: value})


def test_a_file_that_cannot_be_opened_is_named() -> None:
    with pytest.raises(OperatorError, match=r"log file /nowhere/roost\.log cannot be opened: No such file"):
        configure_logs(LogOptions(log_file="/nowhere/roost.log"))


def test_syslog_is_named_if_it_is_missing() -> None:
    if Path("/dev/log").exists():
        pytest.skip("this machine has a syslog")
    with pytest.raises(OperatorError, match="use_syslog: there is no socket /dev/log"):
        configure_logs(options(use_syslog="true"))


def test_facilities_have_oslo_logs_names() -> None:
    assert options(use_syslog="true", syslog_log_facility="LOG_LOCAL3").syslog_facility == "local3"
    assert options(use_syslog="true").syslog_facility == "user"
    assert options(syslog_log_facility="LOG_LOCAL3").syslog_facility is None


def test_the_file_is_in_the_folder() -> None:
    assert options(log_dir="/a").file == "/a/roost.log"
    assert options(log_dir="/a", log_file="b.log").file == "/a/b.log"
    assert options(log_dir="/a", log_file="/b/c.log").file == "/b/c.log"
    assert options(log_file="c.log").file == "c.log"
    assert options(logfile="c.log").file == "c.log", "the name that it had before"


def test_libraries_are_quiet_unless_the_options_say_otherwise() -> None:
    loggers = logging_config(LogOptions(debug=True))["loggers"]
    assert {name: loggers[name]["level"] for name in QUIET} == dict.fromkeys(QUIET, logging.WARNING)


def test_each_option_of_oslo_log_works_or_is_named_with_a_reason(tmp_path: Path) -> None:
    options_of_oslo = pytest.importorskip("oslo_log._options").list_opts()[0][1]
    names = sorted({option.dest for option in options_of_oslo} | {"watch_log_file"})
    file = tmp_path / "placement.conf"
    file.write_text("[DEFAULT]\n" + "".join(f"{name} = 1\n" for name in names))
    lines = unsupported_options(Source((str(file),)), "noauth2", {})
    without_effect = {line.split("] ")[1].split(" is ignored: ")[0]: line for line in lines}
    assert not [line for line in lines if "no such" in line]
    assert sorted(set(names) - set(without_effect)) == [
        "debug", "default_log_levels", "log_date_format", "log_dir", "log_file", "syslog_log_facility",
        "use_json", "use_stderr", "use_syslog",
    ]  # fmt: skip
