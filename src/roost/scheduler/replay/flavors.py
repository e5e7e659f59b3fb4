"""Flavors with changes that an operator writes on a command line."""

import msgspec

from roost.model.errors import OperatorError
from roost.model.spec import Flavor

_NUMBERS = ("vcpus", "memory_mb", "disk_gb", "ephemeral_gb", "swap_mb")


def flavor_from(flavor: Flavor, text: str) -> Flavor:
    """Return a flavor with changes such as ``vcpus=2,hw:cpu_policy=dedicated``.

    A key that is no field of a flavor is an extra spec; an empty value removes it.

    Raises:
        OperatorError: the text does not have this form, or the value of a numeric field is no number.
    """
    fields: dict[str, int] = {}
    extra_specs = dict(flavor.extra_specs)
    for part in text.split(","):
        key, separator, value = part.strip().partition("=")
        if not separator or not key:
            raise OperatorError(f"flavor: {part!r} is not of the form KEY=VALUE")
        if key in _NUMBERS:
            if not value.isdecimal():
                raise OperatorError(f"flavor: {key} is {value!r}, which is not a number")
            fields[key] = int(value)
        elif value:
            extra_specs[key] = value
        else:
            extra_specs.pop(key, None)
    return msgspec.structs.replace(flavor, **fields, extra_specs=extra_specs)
