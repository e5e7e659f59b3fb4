"""Requests for PCI devices that are resource providers, as request groups.

Source: ``generate_request_groups_from_pci_requests`` of Nova's ``RequestSpec``, and
``nova/compute/pci_placement_translator.py``.
"""

import os_resource_classes
import os_traits

from roost.fleet.hardware.pci_choice import group_suffix
from roost.model.request import RequestGroup, all_of
from roost.model.spec import PciRequest
from roost.model.vocabulary import standard_resource_classes, standard_traits


def groups_of(request: PciRequest) -> tuple[RequestGroup, ...]:
    """Return one request group for each device of a flavor's alias.

    Raises:
        ValueError: the request has several specs, which a placement query cannot express.
    """
    if len(request.specs) != 1:
        raise ValueError(f"alias {request.alias!r} has several specs, which placement cannot be asked for")
    [spec] = request.specs
    resources = {resource_class(spec): 1}
    required = all_of(*sorted(traits(spec.get("traits") or "")))
    return tuple(
        RequestGroup(resources=resources, suffix=group_suffix(request, number), required=required)
        for number in range(request.count)
    )


def resource_class(spec: dict[str, str | None]) -> str:
    """Return the resource class of the devices that suit a spec: the named one, else one made of its ids."""
    name = spec.get("resource_class")
    if not name:
        return f"CUSTOM_PCI_{spec.get('vendor_id')}_{spec.get('product_id')}".upper()
    name = name.upper()
    if name in standard_resource_classes() or os_resource_classes.is_custom(name):
        return name
    return os_resource_classes.normalize_name(name)  # type: ignore[no-any-return]


def traits(text: str) -> frozenset[str]:
    """Return traits from names separated by commas. A name that is no standard trait becomes a custom one."""
    return frozenset(_trait(name) for name in text.split(",") if text)


def _trait(name: str) -> str:
    if name in standard_traits():
        return name
    upper = name.upper()
    return upper if os_traits.is_custom(upper) else os_traits.normalize_name(upper)
