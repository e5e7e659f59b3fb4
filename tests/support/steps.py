"""Counts the steps of Python that a computation takes: what costs time, without a clock."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_of(function: Callable[[], object], folder: str = "roost/") -> int:
    """Return the number of lines that a function executes in modules below a folder."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if folder not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
