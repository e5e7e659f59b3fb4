"""The form of a request: what people write into it, as a request spec, and the other way round."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.dashboard.page import PageQuery
from roost.model.spec import Flavor, Image, RequestSpec, ServerGroup
from roost.model.vocabulary import MAX_INT, MAX_NAME
from roost.model.what_if import MoreHosts, Scenario
from roost.web.query import Uuid

_Amount = Annotated[int, Meta(ge=0, le=MAX_INT)]
_Lines = Annotated[str, Meta(max_length=20_000)]
_Name = Annotated[str, Meta(max_length=MAX_NAME)]

Policy = Literal["", "affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"]

MOST_PLACED = 10_000
"""Most instances that are placed."""
MOST_ADDED = 1_000
"""Most hosts of one kind that are added."""


class RequestForm(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The fields of the form, which are the query of its page.

    ``run``: the decision whose request it began with. What the form has no field for is as there: ports,
    devices, requested and forced hosts. Names in lists stand on lines of their own, or have commas between
    them; keys and values are KEY=VALUE. ``added``: HOST=NUMBER, so many hosts that are as HOST. ``without``:
    constraints that are left out, see `Scenario`. ``count``: so many instances are placed at most.
    """

    run: Uuid | None = None
    flavor: _Name = ""
    vcpus: _Amount | None = None
    memory_mb: _Amount | None = None
    disk_gb: _Amount = 0
    extra_specs: _Lines = ""
    required: _Lines = ""
    forbidden: _Lines = ""
    zone: _Name = ""
    image: _Lines = ""
    hints: _Lines = ""
    policy: Policy = ""
    group: _Name = ""
    members: _Lines = ""
    per_host: Annotated[int, Meta(ge=1, le=MAX_INT)] = 1
    count: Annotated[int, Meta(ge=1, le=MOST_PLACED)] = 1_000
    drained: _Lines = ""
    added: _Lines = ""
    without: _Lines = ""

    @property
    def is_filled(self) -> bool:
        """True if it says what an instance needs."""
        return self.vcpus is not None and self.memory_mb is not None


class FieldFault(msgspec.Struct, frozen=True):
    """A field of the form that cannot be read, and why."""

    field: str
    text: str


class BadForm(Exception):
    """Fields cannot be read."""

    def __init__(self, *faults: FieldFault) -> None:
        super().__init__(", ".join(each.text for each in faults))
        self.faults = faults


def form_of(spec: RequestSpec, run: str | None = None) -> RequestForm:
    """Return the form of a request. ``run``: of its decision."""
    flavor, group = spec.flavor, spec.group
    return RequestForm(
        run=run,
        flavor=flavor.name,
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        disk_gb=flavor.disk_gb,
        extra_specs=_pairs(flavor.extra_specs),
        required=_lines(spec.required_traits),
        forbidden=_lines(spec.forbidden_traits),
        zone=spec.availability_zone or "",
        image=_pairs(spec.image_properties),
        hints="\n".join(f"{key}={each}" for key, values in spec.scheduler_hints.items() for each in values),
        policy="" if group is None else group.policy,
        group="" if group is None else group.uuid,
        members="" if group is None else "\n".join(group.hosts),
        per_host=1 if group is None else group.max_server_per_host,
    )


def spec_of_form(form: RequestForm, base: RequestSpec) -> RequestSpec:
    """Return the request of a form. ``base``: has what the form has no field for.

    Raises:
        BadForm: a field cannot be read, or is missing.
    """
    faults: list[FieldFault] = []
    read = _Reader(form, faults)
    extra_specs, properties = read.pairs("extra_specs"), read.pairs("image")
    hints: dict[str, tuple[str, ...]] = {}
    for key, value in read.each_pair("hints"):
        hints[key] = (*hints.get(key, ()), value)
    faults += [
        FieldFault(name, "say how much") for name in ("vcpus", "memory_mb") if getattr(form, name) is None
    ]
    if faults:
        raise BadForm(*faults)
    image = base.image
    if image is not None or properties:
        image = msgspec.structs.replace(image or Image(), properties=properties)
    return msgspec.structs.replace(
        base,
        flavor=msgspec.structs.replace(
            base.flavor,
            name=form.flavor or "custom",
            vcpus=form.vcpus,
            memory_mb=form.memory_mb,
            disk_gb=form.disk_gb,
            extra_specs=extra_specs,
        ),
        image=image,
        availability_zone=form.zone or None,
        required_traits=frozenset(names_in(form.required)),
        forbidden_traits=frozenset(names_in(form.forbidden)),
        scheduler_hints=hints,
        group=_group(form, base.group),
    )


def scenario_of_form(form: RequestForm) -> Scenario:
    """Return the hosts that a form drains and adds, and the constraints that it leaves out.

    Raises:
        BadForm: a number of hosts cannot be read.
    """
    faults: list[FieldFault] = []
    added = []
    for name, text in _Reader(form, faults).each_pair("added"):
        number = int(text) if text.isdecimal() and len(text) < 6 else 0
        if not 1 <= number <= MOST_ADDED:
            faults.append(FieldFault("added", f"{text[:40]!r} is no number from 1 to {MOST_ADDED:,}"))
        added.append(MoreHosts(name, number))
    if faults:
        raise BadForm(*faults)
    without = tuple(line.strip() for line in form.without.splitlines() if line.strip())
    return Scenario(tuple(names_in(form.drained)), tuple(added), without)


def new_spec(project: str, user: str) -> RequestSpec:
    """Return a request for nothing yet."""
    return RequestSpec(project_id=project, user_id=user, flavor=Flavor("custom", 0, 0))


def beyond_the_form(spec: RequestSpec) -> tuple[str, ...]:
    """Return in words what a request asks for that the form has no field for."""
    flavor, destination = spec.flavor, spec.requested_destination
    known: tuple[tuple[object, str], ...] = (
        (spec.operation != "create", f"the operation {spec.operation}"),
        (flavor.ephemeral_gb, f"{flavor.ephemeral_gb} GiB of ephemeral disk"),
        (flavor.swap_mb, f"{flavor.swap_mb} MiB of swap"),
        (spec.volume_backed, "a root disk on a volume"),
        (spec.requested_resources, f"{len(spec.requested_resources)} request groups of ports and devices"),
        (spec.pci_requests, f"{len(spec.pci_requests)} requests for PCI devices"),
        (spec.requested_networks, f"{len(spec.requested_networks)} networks"),
        (destination, "a requested destination"),
        (spec.force_hosts or spec.force_nodes, "forced hosts"),
        (spec.ignore_hosts, f"{len(spec.ignore_hosts)} ignored hosts"),
        (spec.retried_hosts, f"{len(spec.retried_hosts)} hosts that have failed it"),
        (spec.root_required or spec.root_forbidden, "traits of the root provider"),
    )
    return tuple(words for asked, words in known if asked)


def names_in(text: str) -> Iterator[str]:
    """Yield the names of a list, one after another."""
    for line in text.replace(",", "\n").splitlines():
        if line.strip():
            yield line.strip()


class _Reader:
    """Reads the fields of a form that have several values, and notes the faults."""

    def __init__(self, form: RequestForm, faults: list[FieldFault]) -> None:
        self._form = form
        self._faults = faults

    def pairs(self, field: str) -> dict[str, str]:
        return dict(self.each_pair(field))

    def each_pair(self, field: str) -> Iterator[tuple[str, str]]:
        for line in getattr(self._form, field).splitlines():
            if not line.strip():
                continue
            key, separator, value = line.partition("=")
            if not (separator and key.strip()):
                self._faults.append(FieldFault(field, f"{line.strip()[:40]!r} is not of the form KEY=VALUE"))
                continue
            yield key.strip(), value.strip()


def _group(form: RequestForm, base: ServerGroup | None) -> ServerGroup | None:
    if not form.policy:
        return None
    group = base or ServerGroup("", form.policy)
    return msgspec.structs.replace(
        group,
        uuid=form.group or group.uuid or "a group",
        policy=form.policy,
        hosts=tuple(names_in(form.members)),
        max_server_per_host=form.per_host,
    )


def _pairs(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={value}" for key, value in values.items())


def _lines(names: Iterable[str]) -> str:
    return "\n".join(sorted(names))
