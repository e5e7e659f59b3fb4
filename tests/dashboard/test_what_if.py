"""What if: the form reads as it was written, and its answer is that of the scheduler."""

import asyncio
from pathlib import Path
from urllib.parse import urlencode

import pytest

from roost.dashboard.html.shell import Viewing
from roost.dashboard.pages.what_if import WHAT_IF_PAGE
from roost.dashboard.views.relaxed_form import form_address
from roost.dashboard.views.request_form import BadForm, RequestForm, form_of, scenario_of_form, spec_of_form
from roost.dashboard.views.what_if import WhatIfView
from roost.model.reasons import HostNames
from roost.model.spec import Image, RequestedDestination, RequestSpec, ServerGroup
from roost.model.what_if import MoreHosts, Scenario, Share, WhatIf, ZoneShare
from support.clouds import spec
from support.dashboard_users import dashboard_users
from support.hostile import HOSTILE, check_shown_as_text
from support.pages import html_of

VIEWING = Viewing("olga", True, "guard", "/ui/what-if", nonce="nonce")


@pytest.mark.parametrize(
    "wanted",
    [
        spec(),
        spec(4, 8192, 20, extra_specs={"hw:cpu_policy": "dedicated", "resources:CUSTOM_GPU": "2"}),
        spec(
            availability_zone="north",
            required_traits=frozenset({"CUSTOM_A", "CUSTOM_B"}),
            forbidden_traits=frozenset({"CUSTOM_C"}),
            scheduler_hints={"same_host": ("a", "b"), "query": ('["=", "$free_ram_mb", 1]',)},
            image=Image("image", "raw", {"hw_disk_bus": "virtio"}),
            group=ServerGroup("g", "anti-affinity", ("host1", "host2"), 3, ("m",)),
            requested_destination=RequestedDestination(host="host3"),
            ignore_hosts=frozenset({"host4"}),
        ),
    ],
)
def test_a_request_in_the_form_is_the_same_request(wanted: RequestSpec) -> None:
    assert spec_of_form(form_of(wanted), wanted) == wanted


def test_a_cleared_field_is_not_asked_for() -> None:
    wanted = spec(availability_zone="north", extra_specs={"a": "b"}, group=ServerGroup("g", "affinity"))
    form = RequestForm(vcpus=1, memory_mb=1024, disk_gb=10, flavor="small")
    assert spec_of_form(form, wanted) == spec()


def test_a_scenario_is_read() -> None:
    form = RequestForm(
        drained="host1, host2\nhost3", added="host4 = 8", without="required A\n\n4 VCPU, may be split"
    )
    assert scenario_of_form(form) == Scenario(
        ("host1", "host2", "host3"), (MoreHosts("host4", 8),), ("required A", "4 VCPU, may be split")
    )


@pytest.mark.parametrize(
    ("field", "text"),
    [("extra_specs", "a"), ("image", "=b"), ("added", "host"), ("added", "host=0"), ("hints", "x")],
)
def test_a_line_that_cannot_be_read_is_named(field: str, text: str) -> None:
    form = RequestForm(vcpus=1, memory_mb=1, **{field: text})
    with pytest.raises(BadForm) as error:
        spec_of_form(form, spec())
        scenario_of_form(form)
    assert [each.field for each in error.value.faults] == [field]


def test_the_page_answers_a_form(tmp_path: Path) -> None:
    async def check() -> None:
        async with dashboard_users(tmp_path) as client:
            blank = await client.view("/ui/what-if")
            assert blank["answer"] is None and blank["faults"] == []
            asked = RequestForm(vcpus=1, memory_mb=0, extra_specs="acme:colour=red")
            view = await client.view(form_address(asked))
            answer = view["answer"]
            assert answer["fits"] > 0 and answer["on_hosts"] == 5
            assert answer["zones"] == [{"zone": "nova", "instances": answer["fits"], "hosts": 5}]
            assert view["binds"]["causes"][0]["cause"]["resource_class"] == "VCPU"
            assert [each["key"] for each in answer["warnings"]] == ["acme:colour"]
            drained = await client.view("/ui/what-if?vcpus=1&memory_mb=0&drained=a%0Ab&zone=")
            assert (drained["answer"]["on_hosts"], drained["answer"]["hosts"]) == (3, 3)

            for query, field in (
                ("vcpus=1", "memory_mb"),
                ("vcpus=1&memory_mb=0&extra_specs=a", "extra_specs"),
                ("vcpus=1&memory_mb=0&zone=nowhere", ""),
                ("vcpus=1&memory_mb=0&drained=nobody", ""),
                ("vcpus=1&memory_mb=0&without=CUSTOM_FAST", ""),
            ):
                [fault] = (await client.view(f"/ui/what-if?{query}"))["faults"]
                assert fault["field"] == field, query
                page = (await client.get(f"/ui/what-if?{query}")).text
                assert "cannot be asked like that" in page
            assert (await client.get("/ui/what-if?vcpus=-1")).status_code == 400
            assert (await client.get("/ui/what-if?vcpus=1&memory_mb=0", "mia")).status_code == 403

    asyncio.run(check())


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_are_shown_as_text(kind: str) -> None:
    name = HOSTILE[kind]
    form = RequestForm(vcpus=1, memory_mb=1, extra_specs=name, drained=name, zone=name, flavor="small")
    found = WhatIf(
        fits=1,
        on_hosts=1,
        hosts=1,
        where=(Share(1, 1, HostNames((name,))),),
        zones=(ZoneShare(name, 1, 1),),
    )
    page = html_of(WHAT_IF_PAGE, WhatIfView(form=form, answer=found, zones=(name,)), VIEWING)
    check_shown_as_text(page, name)


def test_an_address_with_a_form_is_the_form() -> None:
    form = RequestForm(vcpus=2, memory_mb=512, extra_specs="a=b\nc=d", without="1 VCPU", count=5)
    assert form_address(form).endswith(
        urlencode({"vcpus": 2, "memory_mb": 512, "extra_specs": "a=b\nc=d", "count": 5, "without": "1 VCPU"})
    )
