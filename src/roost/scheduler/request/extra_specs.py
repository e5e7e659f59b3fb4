"""The operators of extra specs, as Nova's flavors use them.

``= N`` and ``>= N`` (at least N), ``== N``, ``!= N``, ``<= N`` compare numbers; ``s==``, ``s!=``, ``s<``,
``s<=``, ``s>``, ``s>=`` compare text; ``<in> X`` (X is a part of it); ``<all-in> X Y`` (all are parts);
``<or> X <or> Y`` (one of them). Without an operator the texts must be equal. An operator with nothing
behind it matches nothing. Source: ``scheduler/filters/extra_specs_ops.py`` of Nova.
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
_OPERATORS = frozenset(("<or>", "<in>", "<all-in>", *_TEXTS, *_NUMBERS))


def matches(value: str, wanted: str) -> bool:
    """Return whether ``value`` (of a host or aggregate) satisfies ``wanted`` (of a flavor).

    A numeric comparison does not match if one side is no number.
    """
    words = wanted.split()
    if not words or words[0] not in _OPERATORS:
        return value == wanted
    first, rest = words[0], words[1:]
    if not rest:
        return False
    if first == "<or>":
        # Every second word is taken for an <or>, whatever it is.
        return value in rest[::2]
    if first == "<in>":
        return rest[0] in value
    if first == "<all-in>":
        return all(word in value for word in rest)
    if first in _TEXTS:
        return _TEXTS[first](value, rest[0])
    try:
        return _NUMBERS[first](float(value), float(rest[0]))
    except ValueError:
        return False
