"""Timed calls of a scheduler, and answers to the questions of a benchmark; of Python's own library alone.

Nova's interpreter has nothing of Roost, so that its process imports this file by the file's own name.
"""

import json
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO


def timed_calls(
    select: Callable[[Mapping[str, Any], str], None],
    specs: Sequence[Mapping[str, Any]],
    callers: int,
    seconds: float,
    least: int,
) -> dict[str, Any]:
    """Call ``select`` with a spec and the uuid of an instance, one call after another from each caller.

    It ends after ``seconds``, but no caller ends before ``least`` calls. Returns the seconds of each call, in
    the order in which they began, those of all together, and the instances. The first error ends it.
    """
    times: list[tuple[float, float]] = []
    instances: list[str] = []
    errors: list[BaseException] = []
    started = time.perf_counter()

    def call(first: int) -> None:
        number = first
        while not errors and (number < first + least or time.perf_counter() < started + seconds):
            instance = str(uuid.uuid4())
            instances.append(instance)
            spec = json.loads(json.dumps(specs[number % len(specs)]))
            spec["nova_object.data"]["instance_uuid"] = instance
            began = time.perf_counter()
            try:
                select(spec, instance)
            except BaseException as error:
                errors.append(error)
            times.append((began, time.perf_counter() - began))
            number += 1

    threads = [threading.Thread(target=call, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    took = time.perf_counter() - started
    return {"times": [each for _, each in sorted(times)], "seconds": took, "instances": instances}


def answer(functions: object, answers: TextIO) -> None:
    """Answer questions until the input ends."""
    for line in sys.stdin:
        name, arguments = json.loads(line)
        answers.write(json.dumps(getattr(functions, name)(**arguments)) + "\n")
        answers.flush()


def own_output() -> TextIO:
    """Return standard output; what libraries write there from now on goes to standard error."""
    own = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return own
