"""Errors in the form in which Nova's client rebuilds its own exceptions.

oslo.messaging sends the name and module of an exception's class, its ``args`` and its ``kwargs``. The client
makes an object of the class of that name if it trusts the module, and Nova trusts ``nova.exception``. With no
``args`` Nova makes the text of its own message and ``kwargs``.

oslo.messaging sends the traceback too, with the chained exceptions. So none is chained.
"""

from collections.abc import Mapping
from typing import get_args

from roost.nova.calls import NovaRefusal, RefusalKind


class NovaRemoteError(Exception):
    """The base of the classes that stand for those of ``nova.exception``.

    ``kwargs``: the values of the message's names.
    """

    def __init__(self, kwargs: Mapping[str, str]) -> None:
        super().__init__()
        self.args = ()
        self.kwargs = dict(kwargs)

    def __str__(self) -> str:
        return "; ".join(self.kwargs.values())


_CLASSES = {
    name: type(name, (NovaRemoteError,), {"__module__": "nova.exception"}) for name in get_args(RefusalKind)
}


def remote_error(refusal: NovaRefusal) -> NovaRemoteError:
    """Return the exception to raise for a refusal."""
    error: NovaRemoteError = _CLASSES[refusal.kind](refusal.kwargs)
    return error
