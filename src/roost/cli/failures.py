"""The end of a command that fails: what it says of each kind of error, and its exit status."""

import io
import signal
import sys
import traceback
from collections.abc import Iterator

import click

from roost.cli.standard_streams import OutputLost, OutputUnread, drop_standard_output
from roost.model.errors import OperatorError
from roost.model.secrets import safe_message

FOUND_WRONG = 1
COULD_NOT_RUN = 2
INTERRUPTED = 130


def tell_failure(error: BaseException) -> int:
    """Print what ended a command to standard error, without secrets. Returns the exit status.

    The faults that people can correct have a line each: a wrong command line, an `OperatorError`, a refusal
    of the operating system. Anything else is a defect in Roost and has its traceback.
    """
    # A second interrupt during the end of the interpreter ends it at once.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    faults = list(_faults(error))
    lines = dict.fromkeys(map(_line, faults))
    text = "\n".join(line for line in lines if line is not None)
    if None in lines:
        text = "".join(traceback.format_exception(error)).rstrip()
    try:
        sys.stdout.flush()
    except OutputLost:
        drop_standard_output()
    if text:
        print(safe_message(text), file=sys.stderr, flush=True)
    return COULD_NOT_RUN


def _faults(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group of errors, or the one error."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _faults(each)
    else:
        yield error


def _line(error: BaseException) -> str | None:
    """What is said of an error, empty if nothing; None: it is a defect."""
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
            return f"roost: {place}{error.strerror or error}"
        case MemoryError():
            return "roost: the memory of this machine is not enough for that"
    return None
