"""The root of the errors that an operator meets.

Each room draws its own tree in its own file. What a person at a terminal can mend (a file, a URL, a value,
a database) derives from `OperatorError`; the command line prints its text as one line.
"""


class OperatorError(Exception):
    """Something outside the program must be put right. The text is one line that names place and value."""
