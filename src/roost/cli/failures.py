"""The end of a failed command: the message and the exit status of each kind of error."""

import io
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import msgspec

from roost.cli.service_client import RequestRefused
from roost.cli.standard_streams import OutputLost, OutputUnread, drop_standard_output
from roost.model.errors import OperatorError
from roost.model.secrets import safe_message
from roost.process.durable_file import why_no_directory

FOUND_WRONG = 1
"""Exit status: the request was refused, or the command found something wrong."""
COULD_NOT_RUN = 2
"""Exit status: the command line is wrong, or a file or service that it needs is missing."""
INTERRUPTED = 130
"""Exit status after an interrupt: 128 plus the number of SIGINT, as in shells."""

MEANINGS = {
    0: "Done.",
    FOUND_WRONG: "Refused, or found something wrong.",
    COULD_NOT_RUN: "Could not run.",
    INTERRUPTED: "Interrupted.",
}


def tell_failure(error: BaseException, words: Sequence[str]) -> int:
    """Print the error that ended a process, and return its exit status.

    From now on a second interrupt ends the process at once. ``words``: the words of the command line.
    """
    # A second interrupt during the end of the interpreter ends it at once.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    return describe_failure(error, words)


def describe_failure(error: BaseException, words: Sequence[str]) -> int:
    """Print the error that ended a command to standard error, without secrets. Return the exit status.

    Errors that people can correct have a line each: a wrong command line, an `OperatorError`, an error of the
    operating system. Any other error is a defect in Roost and is printed with its traceback. With ``--json``
    among the words of the command line, errors are JSON.
    """
    faults = list(_faults(error))
    status = FOUND_WRONG if all(isinstance(each, RequestRefused) for each in faults) else COULD_NOT_RUN
    lines = dict.fromkeys(map(_line, faults))
    text = "\n".join(line for line in lines if line is not None)
    if None in lines:
        text = "".join(traceback.format_exception(error)).rstrip()
    elif text and _wants_json(words):
        text = _json(status, faults)
    try:
        sys.stdout.flush()
    except OutputLost:
        drop_standard_output()
    if text:
        print(safe_message(text), file=sys.stderr, flush=True)
    return status


def _json(status: int, faults: Sequence[BaseException]) -> str:
    """Return errors as JSON, in the form of services."""
    errors = [described for each in faults for described in _described(each)]
    return msgspec.json.format(msgspec.json.encode({"exit_status": status, "errors": errors})).decode()


def _described(error: BaseException) -> Sequence[Mapping[str, Any]]:
    if isinstance(error, RequestRefused) and error.answer.get("errors"):
        errors: Sequence[Mapping[str, Any]] = error.answer["errors"]
        return errors
    if isinstance(error, click.ClickException):
        return [{"code": "roost.usage", "detail": error.format_message()}]
    code = "roost.refused" if isinstance(error, RequestRefused) else "roost.could_not_run"
    detail = (_line(error) or "").removeprefix("roost: ")
    return [{"code": code, "detail": detail}] if detail else []


def _wants_json(words: Sequence[str]) -> bool:
    """Return whether a command line requests JSON, even if it is wrong elsewhere."""
    place = [*words].index("--format") + 1 if "--format" in words else len(words)
    return "--json" in words or "--format=json" in words or [*words[place : place + 1]] == ["json"]


def _faults(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in a group of errors, or the one error."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _faults(each)
    else:
        yield error


def _line(error: BaseException) -> str | None:
    """Return the message of an error in one line, perhaps empty; None: the error is a defect."""
    match error:
        case OutputUnread() | KeyboardInterrupt():
            return ""
        case click.ClickException():
            shown = io.StringIO()
            error.show(shown)
            return shown.getvalue().rstrip()
        case OperatorError():
            return f"roost: {error}"
        case OSError():
            place = "" if error.filename is None else f"{error.filename}: "
            return f"roost: {place}{why_no_directory(error)}"
        case MemoryError():
            return "roost: the memory of this machine is not enough for that"
    return None
