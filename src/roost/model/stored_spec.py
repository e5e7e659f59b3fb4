"""Stored request specs of earlier versions, brought to the form of `RequestSpec`."""

from typing import Any


def current_spec(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the plain data of a request spec in today's form.

    Until 0.1.0 a hint had one value, properties of the image stood in the spec itself, and ``requested_host``
    named the requested host.
    """
    spec = dict(stored)
    hints = spec.get("scheduler_hints")
    if isinstance(hints, dict):
        spec["scheduler_hints"] = {
            key: [value] if isinstance(value, str) else value for key, value in hints.items()
        }
    properties = spec.pop("image_properties", None)
    if properties:
        spec["image"] = {"properties": properties}
    host = spec.pop("requested_host", None)
    if host is not None:
        spec["requested_destination"] = {"host": host}
    return spec
