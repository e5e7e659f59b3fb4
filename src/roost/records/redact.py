"""Turns a request spec into plain data without secrets, and back.

Users choose the keys and values of image properties, scheduler hints and extra specs: values that look like
secrets are hidden (`roost.model.secrets`).
"""

import re

import msgspec

from roost.model.record import Run
from roost.model.secrets import HIDDEN, is_secret_key, redacted_text
from roost.model.spec import Image, RequestSpec, current_spec
from roost.records.errors import DamagedRecords

# Amounts and traits for placement are never secret, whatever the name of the class or trait.
_PLACEMENT_KEY = re.compile(r"(?:resources|trait)[\w-]*:\w+")
_PLACEMENT_VALUE = re.compile(r"\d{1,10}|required|forbidden")

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(dict[str, object]).decode


def redacted(spec: RequestSpec) -> dict[str, object]:
    """Return a spec as plain JSON data without secrets, equal for equal specs."""
    flavor = msgspec.structs.replace(spec.flavor, extra_specs=_searched(spec.flavor.extra_specs))
    safe = msgspec.structs.replace(
        spec,
        flavor=flavor,
        image=_searched_image(spec.image),
        scheduler_hints={
            key: tuple(_safe_value(key, value) for value in values)
            for key, values in spec.scheduler_hints.items()
        },
    )
    return _decode(_encode(safe))


def without_secrets(spec: RequestSpec) -> RequestSpec:
    """Return a spec in which secrets are replaced by `HIDDEN`."""
    return msgspec.convert(redacted(spec), RequestSpec)


def spec_of(run: Run) -> RequestSpec:
    """Return the request spec of a run, in which secrets are replaced by `HIDDEN`.

    Raises:
        DamagedRecords: the run does not contain a request spec.
    """
    try:
        return msgspec.convert(current_spec(run.spec), RequestSpec)
    except msgspec.ValidationError as error:
        raise DamagedRecords(f"run {run.id} does not contain a request spec: {error}") from error


def _searched(values: dict[str, str]) -> dict[str, str]:
    return {key: _safe_value(key, value) for key, value in values.items()}


def _searched_image(image: Image | None) -> Image | None:
    if image is None or not image.properties:
        return image
    return msgspec.structs.replace(image, properties=_searched(image.properties))


def _safe_value(key: str, value: str) -> str:
    if not is_secret_key(key):
        return redacted_text(value)
    if _PLACEMENT_KEY.fullmatch(key) and _PLACEMENT_VALUE.fullmatch(value):
        return value
    return HIDDEN
