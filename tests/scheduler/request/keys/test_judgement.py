"""The keys of requests: what nothing reads is told, and what can only be a mistake is refused."""

import re
from pathlib import Path

import msgspec
import pytest

from roost.model.aggregate import HostAggregate
from roost.model.spec import Image, RequestSpec, ServerGroup, UnreadKey
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.options import DEFAULT_FILTERS, KeyOptions, SchedulerOptions
from roost.scheduler.plugins.plugins import Filter, Plugins
from roost.scheduler.request.keys.judgement import MOST_KEYS, KeyJudge
from roost.scheduler.request.keys.key import Key, is_near
from roost.scheduler.request.keys.readers import all_known
from support.clouds import report, spec, table_of
from support.steps import lines_of

SOURCE = Path(__file__).parents[4] / "src" / "roost"
NOTHING = table_of([report("one", "n1")])


class SilentFilter:
    """A filter of another package that does not say what it reads."""

    name = "SilentFilter"

    def mask(self, hosts: object, request: object, progress: object) -> None:
        return None


class TellingFilter(SilentFilter):
    name = "TellingFilter"
    reads = (Key("extra_spec", "acme:"), Key("hint", "near_", "[a-z]+"))


def judge(
    *more: str, without: tuple[str, ...] = (), others: tuple[object, ...] = (), **options: object
) -> KeyJudge:
    names = tuple(each for each in (*DEFAULT_FILTERS, *more) if each not in without)
    all_options = SchedulerOptions(filters=names, **options)
    found = Plugins.enabled(all_options)
    more = [Filter.of(each) for each in others]
    return KeyJudge(all_options, Plugins([*found.filters, *more], found.weighers))


def asking(
    extra_specs: dict[str, str] | None = None,
    properties: dict[str, str] | None = None,
    hints: dict[str, tuple[str, ...]] | None = None,
    **more: object,
) -> RequestSpec:
    asked = spec(**more)
    flavor = msgspec.structs.replace(asked.flavor, extra_specs=extra_specs or {})
    image = None if properties is None else Image(properties=properties)
    return msgspec.structs.replace(asked, flavor=flavor, image=image, scheduler_hints=hints or {})


def names(found: tuple[UnreadKey, ...]) -> list[str]:
    return [each.key for each in found]


def refusal(by: KeyJudge, asked: RequestSpec) -> str:
    with pytest.raises(BadRequestSpec) as refused:
        by.check(asked, NOTHING)
    return str(refused.value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("resource:CUSTOM_GPU", "resources:CUSTOM_GPU"),
        ("resorces:VCPU", "resources:VCPU"),
        ("Resources:VCPU", "resources:VCPU"),
        ("resource1:VCPU", "resources1:VCPU"),
        ("trat:CUSTOM_A", "trait:CUSTOM_A"),
        ("hw:cpu_polcy", "hw:cpu_policy"),
        ("hw:cpu_polciy", "hw:cpu_policy"),
        ("hw:cpu-policy", "hw:cpu_policy"),
        ("hw:numa_cpu.0", "hw:numa_cpus.0"),
        ("hw.mem_page_size", None),
        ("capabilites:cpu_info:arch", "capabilities:cpu_info:arch"),
        ("aggregate_instance_extra_spec:ssd", "aggregate_instance_extra_specs:ssd"),
        ("pci_passthru:alias", None),
        ("pci_passthrough:aliases", None),
        ("pci_passthrough:alia", "pci_passthrough:alias"),
        ("accel:device_profil", "accel:device_profile"),
        ("os:secureboot", "os:secure_boot"),
        ("quota:cpu_quotas", "quota:cpu_quota"),
        ("vmware:hw_versions", "vmware:hw_version"),
        ("prefered_trait:CUSTOM_A", "preferred_trait:CUSTOM_A"),
        ("hw_cpu_policy:x", None),
    ],
)
def test_an_extra_spec_one_edit_from_a_known_one_is_refused_with_the_one_that_was_meant(
    written: str, meant: str | None
) -> None:
    asked = asking({written: "1"})
    if meant is None:
        assert names(judge().check(asked, NOTHING)) == [written]
    else:
        assert refusal(judge(), asked) == f"extra spec {written} is unknown: did you mean {meant}?"


@pytest.mark.parametrize(
    "written", ["gruop", "groups", "same_hots", "diferent_host", "querry", "cird", "Group"]
)
def test_a_hint_one_edit_from_a_known_one_is_refused(written: str) -> None:
    assert "did you mean" in refusal(judge(), asking(hints={written: ("x",)}))


@pytest.mark.parametrize(
    "written", ["hw:cpu_policy", "hw_disk_buss", "hw_numa_node", "traits:CUSTOM_A", "architecure", "os_typ"]
)
def test_an_image_property_one_edit_from_a_known_one_is_refused(written: str) -> None:
    assert "did you mean" in refusal(judge(), asking(properties={written: "x"}))


@pytest.mark.parametrize(
    "extra_specs",
    [
        {"resources1:VCPU": "1", "resources2:VCPU": "1"},
        {"resources_A:VCPU": "1", "trait_A:CUSTOM_A": "required"},
        {"trait:HW_CPU_X86_AVX": "required", "trait:HW_CPU_X86_AVX2": "forbidden"},
        {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "prefer", "group_policy": "none"},
        {"capabilities:cpu_info:arch": "x", "capabilities:cpu_info:arc": "x"},
        {"accel:device_profile": "gpu", "os:secure_boot": "required"},
        {"hypervisor_type": "QEMU"},
    ],
)
def test_what_follows_the_fixed_part_is_a_parameter_whose_neighbours_are_legal(
    extra_specs: dict[str, str],
) -> None:
    assert judge().check(asking(extra_specs), NOTHING) == ()


def test_numa_cells_are_read_by_their_filter_or_with_trees() -> None:
    asked = asking({"hw:numa_cpus.0": "0", "hw:numa_cpus.1": "1", "hw:numa_mem.0": "8", "hw:numa_mem.1": "8"})
    assert judge("NUMATopologyFilter").check(asked, NOTHING) == ()
    assert len(judge().check(asked, NOTHING)) == 4


@pytest.mark.parametrize(
    ("hint", "filters"),
    [
        ("same_host", ("SameHostFilter",)),
        ("different_host", ("DifferentHostFilter",)),
        ("query", ("JsonFilter",)),
        ("build_near_host_ip", ("SimpleCIDRAffinityFilter",)),
    ],
)
def test_a_hint_whose_filter_is_off_is_told(hint: str, filters: tuple[str, ...]) -> None:
    asked = asking(hints={hint: ("x",)})
    [told] = judge().check(asked, NOTHING)
    assert (told.where, told.key) == ("hint", hint)
    assert filters[0] in told.text
    assert judge(*filters).check(asked, NOTHING) == ()


def test_an_empty_hint_asks_for_nothing() -> None:
    assert judge().check(asking(hints={"same_host": ()}), NOTHING) == ()


def test_a_hint_that_goes_with_another_is_told_where_that_is_missing() -> None:
    by = judge("SimpleCIDRAffinityFilter")
    assert names(by.check(asking(hints={"cidr": ("/24",)}), NOTHING)) == ["cidr"]
    assert by.check(asking(hints={"cidr": ("/24",), "build_near_host_ip": ("10.0.0.1",)}), NOTHING) == ()


def test_the_hint_of_a_server_group_counts_where_the_request_has_the_group() -> None:
    hints = {"group": ("g",)}
    assert names(judge().check(asking(hints=hints), NOTHING)) == ["group"]
    assert judge().check(asking(hints=hints, group=ServerGroup("g", "affinity")), NOTHING) == ()


def test_no_filter_reads_the_keys_of_a_request_that_forces_its_host() -> None:
    extra_specs = {"capabilities:cpu_info:arch": "x86_64", "resources:VCPU": "1"}
    [told] = judge().check(asking(extra_specs, force_hosts=("one",)), NOTHING)
    assert told.key == "capabilities:cpu_info:arch"
    assert "forced" in told.text


def test_an_unscoped_key_belongs_to_the_capability_filter_and_counts_where_a_host_reports_it() -> None:
    reporting = table_of([report("one", "n1", stats={"ssd": "yes"})])
    asked = asking({"ssd": "yes", "group_polcy": "isolate"})
    [told] = judge().check(asked, reporting)
    assert (told.key, "did you mean group_policy?" in told.text) == ("group_polcy", True)
    assert names(judge().check(asked, NOTHING)) == ["ssd", "group_polcy"]
    reporting.update([report("one", "n1", stats={})])
    assert names(judge().check(asked, reporting)) == ["ssd", "group_polcy"]
    reporting.update([report("two", "n2", stats={"ssd": "no"})])
    assert names(judge().check(asked, reporting)) == ["group_polcy"]
    reporting.remove(["n2"])
    assert names(judge().check(asked, reporting)) == ["ssd", "group_polcy"]
    assert judge("AggregateInstanceExtraSpecsFilter").check(asked, NOTHING) == ()


def test_without_a_capability_filter_an_unscoped_key_is_as_any_other() -> None:
    by = judge(without=("ComputeCapabilitiesFilter",))
    assert "did you mean group_policy?" in refusal(by, asking({"group_polcy": "isolate"}))
    assert names(by.check(asking({"ssd": "yes"}), NOTHING)) == ["ssd"]


def test_an_image_property_counts_where_an_aggregate_names_it() -> None:
    asked = asking(properties={"os_distro": "debian"})
    by = judge("AggregateImagePropertiesIsolation")
    assert names(by.check(asked, NOTHING)) == ["os_distro"]
    named = HostAggregate("a", "a", {"os_distro": "debian"})
    assert by.check(asked, table_of([report("one", "n1", aggregates=(named,))])) == ()
    weighing = judge(multipliers={"ImagePropertiesWeigher": 1.0})
    assert weighing.check(asked, NOTHING) == ()


@pytest.mark.parametrize(
    ("extra_spec", "whose"),
    [
        ("hw:watchdog_action", "libvirt"),
        ("quota:vif_inbound_average", "libvirt"),
        ("vmware:storage_policy", "vmware"),
        ("powervm:min_mem", "powervm"),
        ("quota:memory_shares_level", "vmware"),
    ],
)
def test_keys_of_novas_drivers_are_known_and_count_in_requests_of_nova(extra_spec: str, whose: str) -> None:
    value = {"hw:watchdog_action": "reset", "quota:memory_shares_level": "high"}.get(extra_spec, "1")
    asked = asking({extra_spec: value})
    [told] = judge().check(asked, NOTHING)
    assert whose in told.text
    assert judge().unread(asked, NOTHING, of_nova=True) == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hw:cpu_policy", "pinned"),
        ("hw:cpu_max_sockets", "two"),
        ("hw:cpu_cores", "0"),
        ("hw:numa_nodes", "-1"),
        ("hw:numa_mem.0", "1.5"),
        ("hw:numa_cpus.1", "a-b"),
        ("hw:mem_page_size", "huge"),
        ("hw:boot_menu", "maybe"),
        ("hw:watchdog_action", "bark"),
        ("hw:serial_port_count", "-2"),
        ("hw:tpm_version", "3"),
        ("hw:cpu_dedicated_mask", "x"),
        ("hw_rng:rate_bytes", "fast"),
        ("pci_passthrough:alias", "gpu"),
        ("quota:cpu_shares", "many"),
        ("os:secure_boot", "yes"),
    ],
)
def test_a_malformed_value_is_refused_and_named(key: str, value: str) -> None:
    said = refusal(judge(), asking({key: value}))
    assert f"{key}={value!r}" in said


@pytest.mark.parametrize("key", ["hw:numa_cpus.x", "hw:numa_cpus.", "hw:numa_mem", "resources:", "trait:"])
def test_a_key_without_its_parameter_is_refused(key: str) -> None:
    assert re.search(r"unknown: write \S+[N…]", refusal(judge(), asking({key: "1"})))


def test_a_numa_node_after_a_gap_is_refused() -> None:
    asked = asking({"hw:numa_cpus.0": "0", "hw:numa_cpus.2": "1"})
    assert refusal(judge(), asked) == "hw:numa_cpus.2 is given without hw:numa_cpus.1"


def test_a_plugin_of_another_package_declares_what_it_reads() -> None:
    asked = asking({"acme:": "1"}, hints={"near_rack": ("7",), "far_rack": ("7",)})
    assert names(judge(others=(TellingFilter(),)).check(asked, NOTHING)) == ["far_rack"]
    assert "did you mean group?" in refusal(judge(others=(TellingFilter(),)), asking(hints={"gruop": ("x",)}))


def test_beside_a_plugin_that_does_not_say_what_it_reads_no_unscoped_key_is_a_mistake() -> None:
    by = judge(others=(SilentFilter(),))
    [told] = by.check(asking(hints={"gruop": ("x",)}), NOTHING)
    assert "did you mean group?" in told.text
    assert "SilentFilter" in told.text
    assert "did you mean hw:cpu_policy?" in refusal(by, asking({"hw:cpu_polcy": "dedicated"}))


def test_an_option_makes_warnings_refusals_and_another_names_what_is_read_elsewhere() -> None:
    asked = asking(hints={"acme_rack": ("7",)})
    strict = judge(keys=KeyOptions(unread_keys="refuse"))
    assert "acme_rack" in refusal(strict, asked)
    known = judge(keys=KeyOptions(unread_keys="refuse", known_keys=["acme_*"]))
    assert known.check(asked, NOTHING) == ()


def test_a_request_of_nova_is_never_refused() -> None:
    asked = asking({"hw:cpu_polcy": "x"}, hints={"gruop": ("x",)})
    by = judge(keys=KeyOptions(unread_keys="refuse"))
    assert names(by.unread(asked, NOTHING, of_nova=True)) == ["hw:cpu_polcy", "gruop"]


def test_no_value_is_told() -> None:
    told = judge().unread(
        asking({"secret": "hunter2"}, {"password": "hunter2"}, {"token": ("hunter2",)}), NOTHING
    )
    assert len(told) == 3
    assert not any("hunter2" in each.text for each in told)


def test_requests_that_are_alike_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    by = judge()
    asked = asking({"hw:nothing": "1"})
    first = by.unread(asked, NOTHING)
    monkeypatch.setattr(
        "roost.scheduler.request.keys.judgement._Judging", lambda *_: pytest.fail("judged again")
    )
    assert by.unread(asked, NOTHING) is first
    assert by.unread(spec(), NOTHING) == ()


def test_a_request_with_more_keys_than_are_judged_is_refused_before_any_is_looked_at() -> None:
    by = judge()
    many = {f"hw:nothing{number}": "1" for number in range(30_000)}
    assert lines_of(lambda: by.unread(asking(many), NOTHING)) < 100
    assert lines_of(lambda: refusal(by, asking(many))) < 100
    text = "129 extra specs, image properties and scheduler hints, at most 128 may be"
    some = {name: many[name] for name in list(many)[:MOST_KEYS]}
    assert refusal(by, asking(some, hints={"near": ("x",)})) == text
    assert len(by.unread(asking(some), NOTHING)) == MOST_KEYS


def test_unknown_keys_are_compared_with_few_known_ones() -> None:
    by = judge()
    by.unread(asking({"hw:first": "1"}), NOTHING)
    many = {f"hw:nothing{number}": "1" for number in range(MOST_KEYS)}
    assert lines_of(lambda: by.unread(asking(many), NOTHING)) < 900 * MOST_KEYS


def test_requests_with_long_texts_are_not_kept() -> None:
    by = judge()
    asked = asking({"hw:nothing": "1" * 10_000})
    first = by.unread(asked, NOTHING)
    assert by.unread(asked, NOTHING) is not first


@pytest.mark.parametrize("other", ["gruop", "grou", "groups", "grOup", "Group", "ogroup"])
def test_an_edit_is_one_character_or_a_swap(other: str) -> None:
    assert is_near("group", other)
    assert is_near(other, "group")


@pytest.mark.parametrize("other", ["group", "guorp", "grps", "", "rgopu"])
def test_two_edits_are_another_word(other: str) -> None:
    assert not is_near("group", other)


def test_no_known_key_is_taken_for_a_mistake() -> None:
    by = judge()
    for known in all_known():
        key = known.key
        if key.parameter or not key.fixed or key.where == "extra_spec":
            continue
        names_it = {key.fixed: "1"}
        hints = {key.fixed: ("1",)}
        asked = asking(properties=names_it) if key.where == "image_property" else asking(hints=hints)
        assert all(each.key == key.fixed for each in by.check(asked, NOTHING))


_READ = re.compile(
    r"(?:of_flavor|of_image|agreed|agreed_flag)\(\s*\"(\w+)\"|"
    r"(?:extra_specs|properties|flavor)\.get\(\s*\"((?:hw|os|accel|pci_passthrough)[:_][\w:]+)\"|"
    r"_listed\(asked, \"(\w+)\""
)


def test_every_key_that_the_code_reads_is_known() -> None:
    """The tables follow the code: what the scheduler and the drivers look up is in them."""
    keys = [each.key for each in all_known()]
    found = set()
    for room in ("scheduler", "agent", "conductor", "fleet"):
        for path in (SOURCE / room).rglob("*.py"):
            for matter, whole, listed in _READ.findall(path.read_text()):
                found.add(matter or whole or f"{listed}.0")
    assert {"cpu_policy", "hw:tpm_version", "hw_disk_bus", "numa_cpus.0", "sound_model"} <= found
    for each in found:
        spellings = (each, f"hw:{each}", f"hw_{each}", f"os:{each}", f"os_{each}")
        assert any(key.matches(name) for key in keys for name in spellings), each


def test_filters_and_weighers_that_read_keys_declare_them() -> None:
    reading = re.compile(r"extra_specs|image_properties|scheduler_hints|\bhint\(|hint = ")
    for folder in ("filters", "weighers"):
        for path in (SOURCE / "scheduler" / folder).glob("*.py"):
            text = path.read_text()
            if path.stem != "__init__" and reading.search(text):
                assert re.search(r"\breads\b", text), path
