"""The payloads of the notifications of a call, made of the RequestSpec as it was sent.

Source: ``nova.notifications.objects`` and ``RequestSpec.to_legacy_request_spec_dict`` of Nova 34.0.
"""

from collections.abc import Mapping
from typing import Any, Final

Fields = Mapping[str, Any]

_NAME: Final = "nova_object.name"
_DATA: Final = "nova_object.data"

_FLAVOR: Final = (
    "flavorid", "memory_mb", "vcpus", "root_gb", "ephemeral_gb", "name", "swap", "rxtx_factor", "vcpu_weight",
    "disabled", "is_public", "extra_specs", "projects", "description",
)  # fmt: skip
_IMAGE: Final = (
    "id", "name", "status", "visibility", "protected", "checksum", "owner", "size", "virtual_size",
    "container_format", "disk_format", "created_at", "updated_at", "tags", "direct_url", "min_ram",
    "min_disk",
)  # fmt: skip
_GROUP: Final = ("uuid", "name", "user_id", "project_id", "policies", "members", "hosts", "policy")
_NUMA_CELL: Final = (
    "id", "cpuset", "pcpuset", "cpuset_reserved", "memory", "pagesize", "cpu_pinning_raw", "cpu_policy",
    "cpu_thread_policy",
)  # fmt: skip
_PCI_REQUEST: Final = ("count", "spec", "alias_name", "request_id", "numa_policy")
_SPEC: Final = (
    "ignore_hosts", "instance_uuid", "project_id", "user_id", "availability_zone", "scheduler_hints",
)  # fmt: skip
_INSTANCE: Final = ("numa_topology", "pci_requests", "project_id", "user_id", "availability_zone")
_AMOUNTS: Final = ("root_gb", "ephemeral_gb", "memory_mb", "vcpus")

_SECRET_PROPERTY: Final = "hw_ephemeral_encryption_secret_uuid"

_NO_DICTIONARIES: Final = frozenset({"VirtCPUTopology", "InstancePCIRequests", "InstancePCIRequest"})
"""Objects that do not behave as dictionaries. The unversioned payload has all their attributes."""


def versioned_payload(spec: Fields) -> dict[str, Any]:
    """Return the payload of versioned notifications, a RequestSpecPayload."""
    fields = spec[_DATA]
    numa, pci = _fields(fields, "numa_topology"), _fields(fields, "pci_requests")
    instance = fields.get("instance_uuid")
    groups = _fields(fields, "security_groups") or {}
    return _payload(
        "RequestSpecPayload",
        "1.1",
        {
            **_some(fields, _SPEC),
            "num_instances": fields.get("num_instances", 1),
            "flavor": _optional(_flavor, _fields(fields, "flavor")),
            "image": _optional(_image, _fields(fields, "image")),
            "numa_topology": None if numa is None else _numa_topology(numa, instance),
            "pci_requests": None if pci is None else _pci_requests(pci, instance),
            "requested_destination": _optional(_destination, _fields(fields, "requested_destination")),
            "retry": _optional(_retry, _fields(fields, "retry")),
            "instance_group": _optional(_group, _fields(fields, "instance_group")),
            "security_groups": [
                each[_DATA].get("uuid") or each[_DATA].get("name") for each in groups.get("objects", ())
            ],
            "force_hosts": next(iter(fields.get("force_hosts") or ()), None),
            "force_nodes": next(iter(fields.get("force_nodes") or ()), None),
        },
    )


def unversioned_payload(spec: Fields) -> dict[str, Any]:
    """Return the payload of unversioned notifications."""
    fields = spec[_DATA]
    flavor = _fields(fields, "flavor")
    instance = {name: _legacy(fields[name]) for name in _INSTANCE if name in fields}
    if "instance_uuid" in fields:
        instance["uuid"] = fields["instance_uuid"]
    if flavor is not None:
        instance |= _some(flavor, _AMOUNTS)
    return {
        "request_spec": {
            "num_instances": fields.get("num_instances", 1),
            "image": _legacy(fields.get("image") or {}),
            "instance_properties": instance,
            "instance_type": _legacy(fields.get("flavor") or {}),
        }
    }


def _payload(name: str, version: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        _NAME: name,
        "nova_object.namespace": "nova",
        "nova_object.version": version,
        _DATA: fields,
    }


def _fields(fields: Fields, name: str) -> Fields | None:
    """Return the fields of an object in a field; None if it is not set or is null."""
    value = fields.get(name)
    found: Fields | None = None if value is None else value[_DATA]
    return found


def _some(fields: Fields, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: fields.get(name) for name in names}


def _optional(make: Any, fields: Fields | None) -> dict[str, Any] | None:
    return None if fields is None else make(fields)


def _flavor(fields: Fields) -> dict[str, Any]:
    return _payload("FlavorPayload", "1.4", _some(fields, _FLAVOR))


def _image(fields: Fields) -> dict[str, Any]:
    properties = dict(_fields(fields, "properties") or {})
    properties.pop(_SECRET_PROPERTY, None)
    values = _some(fields, _IMAGE) | {"properties": _payload("ImageMetaPropsPayload", "1.20", properties)}
    return _payload("ImageMetaPayload", "1.0", values)


def _group(fields: Fields) -> dict[str, Any]:
    rules = {name: str(value) for name, value in (fields.get("_rules") or {}).items()}
    return _payload("ServerGroupPayload", "1.1", _some(fields, _GROUP) | {"rules": rules})


def _destination(fields: Fields) -> dict[str, Any]:
    values = {name: fields[name] for name in ("host", "node") if fields.get(name) is not None}
    cell = _fields(fields, "cell")
    if cell is not None:
        values["cell"] = _payload("CellMappingPayload", "2.0", _some(cell, ("uuid", "name", "disabled")))
    return _payload("DestinationPayload", "1.0", {**values, "aggregates": fields.get("aggregates")})


def _retry(fields: Fields) -> dict[str, Any]:
    hosts = (_fields(fields, "hosts") or {}).get("objects", ())
    names = [each[_DATA].get("hypervisor_hostname") for each in hosts]
    return _payload(
        "SchedulerRetriesPayload", "1.0", {"num_attempts": fields.get("num_attempts"), "hosts": names}
    )


def _numa_topology(fields: Fields, instance: str | None) -> dict[str, Any]:
    values = {
        "instance_uuid": fields.get("instance_uuid", instance),
        "emulator_threads_policy": fields.get("emulator_threads_policy"),
        "cells": [_numa_cell(each[_DATA]) for each in fields.get("cells", ())],
    }
    return _payload("InstanceNUMATopologyPayload", "1.0", values)


def _numa_cell(fields: Fields) -> dict[str, Any]:
    topology = _fields(fields, "cpu_topology")
    made = None
    if topology is not None:
        made = _payload("VirtCPUTopologyPayload", "1.0", _some(topology, ("sockets", "cores", "threads")))
    return _payload("InstanceNUMACellPayload", "1.2", _some(fields, _NUMA_CELL) | {"cpu_topology": made})


def _pci_requests(fields: Fields, instance: str | None) -> dict[str, Any]:
    requests = [
        _payload("InstancePCIRequestPayload", "1.1", _some(each[_DATA], _PCI_REQUEST))
        for each in fields.get("requests", ())
    ]
    values = {"instance_uuid": fields.get("instance_uuid", instance), "requests": requests}
    return _payload("InstancePCIRequestsPayload", "1.0", values)


def _legacy(value: Any) -> Any:
    """Return a value as Nova's serialiser of unversioned notifications has it."""
    if isinstance(value, list):
        return [_legacy(each) for each in value]
    if not isinstance(value, Mapping) or _NAME not in value:
        return value
    fields = {name: _legacy(each) for name, each in value[_DATA].items()}
    if value[_NAME] not in _NO_DICTIONARIES:
        return {name: _legacy_time(each) if name.endswith("_at") else each for name, each in fields.items()}
    return {
        **{f"_obj_{name}": each for name, each in fields.items()},
        "VERSION": value["nova_object.version"],
        "_changed_fields": value.get("nova_object.changes", []),
        "_context": None,
    }


def _legacy_time(value: Any) -> Any:
    return f"{value.removesuffix('Z')}.000000" if isinstance(value, str) else value
