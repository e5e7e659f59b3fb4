"""The form of a request with a change that makes it fit: "ask again with this"."""

from msgspec.structs import replace

from roost.dashboard import addresses
from roost.dashboard.views.request_form import RequestForm
from roost.model.reasons import Relaxation

_CPUS = ("VCPU", "PCPU")
_ALIAS = "pci_passthrough:alias"


def relaxed_form(form: RequestForm, relaxation: Relaxation) -> RequestForm | None:
    """Return the form with a change; None if the form cannot say it."""
    if relaxation.parts:
        changed: RequestForm | None = form
        for part in relaxation.parts:
            changed = None if changed is None else relaxed_form(changed, part)
        return changed
    if relaxation.without:
        without = dict.fromkeys((*form.without.splitlines(), *relaxation.without))
        return replace(form, without="\n".join(without))
    after = relaxation.after
    if after is None:
        return None
    match relaxation.kind:
        case "amount":
            return _with_amount(form, relaxation)
        case "group":
            return replace(form, per_host=after)
        case "cells":
            return replace(form, **{relaxation.name: after})
        case "devices":
            old, new = (f"{relaxation.name}:{each}" for each in (relaxation.before, after))
            lines = form.extra_specs.splitlines()
            fewer = [line.replace(old, new) if line.startswith(_ALIAS) else line for line in lines]
            return replace(form, extra_specs="\n".join(fewer)) if fewer != lines else None
    return None


def form_address(form: RequestForm) -> str:
    """Return the address of the page of what-ifs with a form filled."""
    default = RequestForm()
    given = {
        name: value
        for name in RequestForm.__struct_fields__
        if name != "format" and (value := getattr(form, name)) != getattr(default, name)
    }
    return addresses.with_query(addresses.WHAT_IF, **given)


def _with_amount(form: RequestForm, relaxation: Relaxation) -> RequestForm | None:
    """Return the form with another amount of a class: the number of the flavor if it is from there."""
    before, after, suffix = relaxation.before, relaxation.after, relaxation.group or ""
    _, _, text = relaxation.name.rpartition(": ")
    resource_class = text.split()[1].rstrip(",")
    key = f"resources{suffix}:{resource_class}"
    lines = form.extra_specs.splitlines()
    named = [line for line in lines if line.partition("=")[0].strip() == key]
    if named:
        changed = [f"{key}={after}" if line in named else line for line in lines]
        return replace(form, extra_specs="\n".join(changed))
    if suffix:
        return None
    if resource_class in _CPUS and form.vcpus == before:
        return replace(form, vcpus=after)
    if resource_class == "MEMORY_MB" and form.memory_mb == before:
        return replace(form, memory_mb=after)
    if resource_class == "DISK_GB" and form.disk_gb == before:
        return replace(form, disk_gb=after)
    return replace(form, extra_specs="\n".join((*lines, f"{key}={after}")))
