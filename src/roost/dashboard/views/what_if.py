"""The number of instances of a request that fit, now or on supposed hosts: a what-if."""

from collections.abc import Iterable

import msgspec

from roost.dashboard.service import DashboardService
from roost.dashboard.views.decision import MissedHost, WayOut, WorkingCause, causes_in, node_of, ways_in
from roost.dashboard.views.request_form import (
    BadForm,
    FieldFault,
    RequestForm,
    beyond_the_form,
    form_of,
    new_spec,
    scenario_of_form,
    spec_of_form,
)
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.model.reasons import Reasons
from roost.model.spec import RequestSpec
from roost.model.visibility import seen, seen_by_project, visible
from roost.model.what_if import Scenario, WhatIf
from roost.records import spec_of
from roost.records.errors import DamagedRecords
from roost.scheduler.api.records import record_of
from roost.scheduler.api.wire.language import check_spec
from roost.scheduler.errors import BadRequestSpec, SchedulerError
from roost.scheduler.nodes.table import NodeTable
from roost.web.errors import BadRequest
from roost.web.request import Request


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """The reasons why not one more instance fits, with the hosts' uuids and the changes' forms."""

    reasons: Reasons
    causes: tuple[WorkingCause, ...]
    misses: tuple[MissedHost, ...]
    ways: tuple[WayOut, ...]


class WhatIfView(msgspec.Struct, frozen=True, kw_only=True):
    """A form and the answer to it.

    ``beyond``: what the request asks for that the form has no field for. ``faults``: fields that cannot be
    read. ``failure``: why there is no answer. ``answer``: None for a form that is not filled yet. ``zones``:
    the names of the zones to choose from.
    """

    form: RequestForm
    beyond: tuple[str, ...] = ()
    faults: tuple[FieldFault, ...] = ()
    failure: str | None = None
    answer: WhatIf | None = None
    binds: Binding | None = None
    zones: tuple[str, ...] = ()


@seen_by_project(WhatIfView)
def _of_project(view: WhatIfView) -> WhatIfView:
    answer = None if view.answer is None else seen(view.answer)
    return msgspec.structs.replace(view, answer=answer, binds=None)


async def what_if_view(service: DashboardService, req: Request) -> WhatIfView:
    """Return the answer to a form. Raises `BadRequest`, `NotFound`: of the decision that it began with."""
    form: RequestForm = req.query
    base = new_spec(req.identity.project_id or "admin", req.identity.user_id or "admin")
    if form.run is not None:
        record = visible(await record_of(service.records, form.run, req.projects), req.viewer)
        try:
            base = spec_of(record.run)
        except DamagedRecords as error:
            raise BadRequest(str(error)) from error
        if not form.is_filled:
            form = merged(form_of(base, form.run), form)
    view = WhatIfView(
        form=form, beyond=beyond_the_form(base), zones=tuple(zones_of(service.table, service.default_zone))
    )
    if form == RequestForm(format=form.format):
        return view
    try:
        spec, scenario = spec_of_form(form, base), scenario_of_form(form)
    except BadForm as error:
        return msgspec.structs.replace(view, faults=error.faults)
    try:
        return await _answered(service, view, spec, scenario)
    except BadRequestSpec as error:
        return msgspec.structs.replace(view, faults=(FieldFault("", str(error)),))
    except SchedulerError as error:
        return msgspec.structs.replace(view, failure=str(error))


async def _answered(
    service: DashboardService, view: WhatIfView, spec: RequestSpec, scenario: Scenario
) -> WhatIfView:
    warnings = await service.scheduler.check_request(check_spec(spec))
    found = await service.scheduler.what_if(spec, view.form.count, scenario)
    if found is None:
        why = (
            "Placement is reached over HTTP here: there is no copy of the ledger to place instances on."
            if service.ledger is None
            else "Too many questions wait, or hosts come from the cells' databases. Ask again in a moment."
        )
        return msgspec.structs.replace(view, failure=why)
    return msgspec.structs.replace(
        view,
        answer=msgspec.structs.replace(found, warnings=warnings),
        binds=None if found.binds is None else binding_of(found.binds, view.form, service.table),
    )


def binding_of(reasons: Reasons, form: RequestForm, table: NodeTable) -> Binding:
    """Return reasons with the uuids of hosts, and with the addresses of the changes that work."""
    return Binding(
        reasons=reasons,
        causes=tuple(causes_in(reasons, table)),
        misses=tuple(MissedHost(each, node_of(table, each.host)) for each in reasons.misses),
        ways=tuple(ways_in(reasons, table, form)),
    )


def merged(form: RequestForm, given: RequestForm) -> RequestForm:
    """Return a form with the fields that are given in another."""
    default = RequestForm()
    fields = {
        name: value
        for name in RequestForm.__struct_fields__
        if (value := getattr(given, name)) != getattr(default, name)
    }
    return msgspec.structs.replace(form, **fields)


def zones_of(table: NodeTable, default: str) -> Iterable[str]:
    """Return the names of all availability zones."""
    return sorted(
        {default, *(value for key, value, _ in table.aggregates_by_metadata() if key == AVAILABILITY_ZONE)}
    )
