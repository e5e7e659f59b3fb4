"""The base class of errors that an operator can correct.

Each package defines its own tree of errors in its own file. An error whose cause is outside the program (a
file, a URL, an option, a database) derives from `OperatorError`; the command line prints it as one line.
"""


class OperatorError(Exception):
    """A fault in the installation or the configuration. Its text is one line with the place and the value."""
