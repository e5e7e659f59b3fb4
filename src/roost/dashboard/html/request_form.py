"""The form of a request as HTML."""

from typing import Any

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.addresses import WHAT_IF
from roost.dashboard.html.values import sentence
from roost.dashboard.views.what_if import WhatIfView

_POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")


def request_form(view: WhatIfView) -> h.Element:
    """Return the form of a request, with the faults of its fields."""
    form, faults = view.form, {each.field: each.text for each in view.faults}

    def field(name: str, label: str, shown: h.Node, hint: h.Node = None) -> h.Element:
        return h.div(".field")[
            h.label(for_=f"w-{name}")[label],
            shown,
            h.p(".error", id=f"e-{name}")[h.bdi[faults[name]]] if name in faults else None,
            h.p(".hint")[hint] if hint else None,
        ]

    def attributes(name: str) -> dict[str, Any]:
        wrong = name in faults
        return {
            "id": f"w-{name}",
            "name": name,
            "aria_invalid": "true" if wrong else None,
            "aria_describedby": f"e-{name}" if wrong else None,
            "autocomplete": "off",
            "spellcheck": "false",
        }

    def text(name: str, label: str, hint: h.Node = None, **more: Any) -> h.Element:
        return field(name, label, h.input(value=getattr(form, name), **attributes(name), **more), hint)

    def amount(name: str, label: str, least: int = 0) -> h.Element:
        value = getattr(form, name)
        return text_of(name, label, "" if value is None else str(value), least)

    def text_of(name: str, label: str, value: str, least: int) -> h.Element:
        return field(name, label, h.input(type="number", min=str(least), value=value, **attributes(name)))

    def lines(name: str, label: str, hint: h.Node = None, rows: int = 2) -> h.Element:
        area = h.textarea(rows=str(rows), **attributes(name))[getattr(form, name)]
        return field(name, label, area, hint)

    def choice(name: str, label: str, values: tuple[str, ...], every: str) -> h.Element:
        chosen = getattr(form, name)
        known = values if chosen in ("", *values) else (*values, chosen)
        return field(
            name,
            label,
            h.select(id=f"w-{name}", name=name)[
                h.option(value="", selected=not chosen)[every],
                [h.option(value=each, selected=each == chosen)[each] for each in known],
            ],
        )

    supposed = bool(form.drained or form.added or form.without)
    grouped = bool(form.policy)
    return h.form(".card.form.ask-form", method="get", action=WHAT_IF, aria_label="The request")[
        _base(view),
        h.div(".fields")[
            amount("vcpus", "vCPUs"), amount("memory_mb", "Memory, MiB"), amount("disk_gb", "Disk, GiB")
        ],
        lines(
            "extra_specs",
            "Extra specs",
            ["KEY=VALUE on each line: ", h.code["resources:VGPU=1"], ", ", h.code["hw:cpu_policy=dedicated"]],
            rows=3,
        ),
        h.div(".fields")[
            choice("zone", "Availability zone", view.zones, "any"), amount("count", "At most", 1)
        ],
        h.div(".fields")[lines("required", "Traits required"), lines("forbidden", "Traits forbidden")],
        h.details(open=supposed)[
            h.summary["Other hosts, or without a condition"],
            lines("drained", "Hosts drained", "names, on lines of their own"),
            lines("added", "Hosts added", ["HOST=NUMBER: so many hosts that are as HOST, empty"]),
            lines(
                "without",
                "Left out",
                [
                    "a filter, a trait, a class, ",
                    h.code["server group"],
                    ": as the funnel of a decision names it",
                ],
            ),
        ],
        h.details(open=grouped or bool(form.image or form.hints))[
            h.summary["Server group, image, hints"],
            h.div(".fields")[
                choice("policy", "Server group", _POLICIES, "none"),
                amount("per_host", "Members on a host", 1),
            ],
            text("group", "Its uuid", "members that have a claim count"),
            lines("members", "Hosts of its members"),
            lines("image", "Properties of the image", "KEY=VALUE on each line"),
            lines("hints", "Scheduler hints", "KEY=VALUE on each line"),
        ],
        text("flavor", "Name of the flavor", "some filters compare it"),
        h.p(".error", role="alert")[h.bdi[sentence(faults[""])]] if "" in faults else None,
        h.div(".button-row")[
            h.input(type="hidden", name="run", value=form.run) if form.run else None,
            h.button(".button.primary", type="submit")["Ask"],
            h.a(".button.quiet", href=WHAT_IF)["Clear"],
        ],
    ]


def _base(view: WhatIfView) -> h.Node:
    if view.form.run is None:
        return None
    return h.div(".notice.state-note")[
        h.p[
            "The request of ",
            h.a(href=addresses.decision(view.form.run))["a decision"],
            f", with {', '.join(view.beyond)} as there." if view.beyond else ".",
        ]
    ]
