"""Answers questions to Nova's classes: one line of JSON in, one line out, until the input ends.

A question is ``[module, function, arguments]``: a function of a module beside this file. An answer is
``[null, result]``, or ``[[kind, text], null]`` for what the function raised. It runs on the interpreter of
Nova's environment, see ``tests/support/nova.py``.
"""

import importlib
import json
import sys


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what Nova prints is no answer
    for line in sys.stdin:
        module, function, arguments = json.loads(line)
        try:
            answer = [None, getattr(importlib.import_module(module), function)(**arguments)]
        except Exception as error:
            answer = [[type(error).__name__, str(error)], None]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
