"""The operators of extra specs, as Nova's flavors use them.

``= N`` and ``>= N`` (at least N), ``== N``, ``!= N``, ``<= N`` compare numbers; ``s==``, ``s!=``, ``s<``,
``s<=``, ``s>``, ``s>=`` compare text; ``<in> X`` (X is a part of it); ``<all-in> X Y`` (all are parts);
``<or> X <or> Y`` (one of them). Without an operator the texts must be equal.
Source: the flavor documentation of Nova ("extra specs").
"""

import operator
from collections.abc import Callable

_NUMBERS: dict[str, Callable[[float, float], bool]] = {
    "=": operator.ge,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
}
_TEXTS: dict[str, Callable[[str, str], bool]] = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
}


def matches(value: str, wanted: str) -> bool:
    """Whether ``value`` (of a host or aggregate) satisfies ``wanted`` (of a flavor).

    A number that is asked for but not there does not match.
    """
    words = wanted.split()
    if not words:
        return value == wanted
    first, rest = words[0], words[1:]
    if first == "<or>":
        return value in [word for word in words if word != "<or>"]
    if first == "<in>" and rest:
        return rest[0] in value
    if first == "<all-in>":
        return all(word in value for word in rest)
    if first in _TEXTS and rest:
        return _TEXTS[first](value, rest[0])
    if first in _NUMBERS and rest:
        try:
            return _NUMBERS[first](float(value), float(rest[0]))
        except ValueError:
            return False
    return value == wanted
