"""Image properties under today's names, spelled as Nova spells them; what reads them compares these."""

import pytest

from roost.model.aggregate import HostAggregate
from roost.model.node import NodeInstance
from roost.model.spec import Image
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugin_calls import ask_weigher, verdict
from roost.scheduler.request.image_properties import with_current_names
from roost.scheduler.request.scheduling_request import GroupPlacement
from support.clouds import report, spec, table_of
from support.offering import MadeUp, named_filters, named_weighers, scheduling_request


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"architecture": "AMD64"}, {"hw_architecture": "x86_64"}),
        ({"hw_architecture": "i386", "architecture": "aarch64"}, {"hw_architecture": "i686"}),
        ({"architecture": "aarch64", "hw_architecture": "i386"}, {"hw_architecture": "i686"}),
        ({"hw_pmu": "yes", "hw_boot_menu": "no"}, {"hw_pmu": "True", "hw_boot_menu": "False"}),
        ({"hw_cpu_cores": " 04"}, {"hw_cpu_cores": "4"}),
        ({"hw_cpu_cores": "many"}, {"hw_cpu_cores": "many"}),
        ({"vmware_adaptertype": "ide"}, {"hw_disk_bus": "ide"}),
        (
            {"vmware_adaptertype": "paraVirtual", "hw_disk_bus": "virtio"},
            {"hw_disk_bus": "virtio", "hw_scsi_model": "vmpvscsi"},
        ),
        (
            {"trait:B": "required", "trait:A": "required", "trait:C": "forbidden"},
            {"traits_required": "['B', 'A']"},
        ),
        ({"own": "Value"}, {"own": "Value"}),
    ],
)
def test_names_and_spellings(properties: dict[str, str], expected: dict[str, str]) -> None:
    assert with_current_names(properties) == expected


@pytest.mark.parametrize(
    ("properties", "passes"),
    [({"hw_pmu": "on"}, True), ({"hw_pmu": "off"}, True), ({"os_distro": "b"}, False), ({"own": "x"}, False)],
)
def test_aggregates_are_compared_with_spelled_values(properties: dict[str, str], passes: bool) -> None:
    metadata = {"hw_pmu": "True", "os_distro": "a", "own": "y"}
    table = table_of([report("host0", "node0", aggregates=(HostAggregate("uuid", "a", metadata),))])
    [plugin] = named_filters("AggregateImagePropertiesIsolation")
    asked = scheduling_request(of=spec(image=Image("i", None, properties)))
    mask = verdict(plugin, HostView(table, MadeUp([1])), asked, GroupPlacement())
    assert (mask is None or bool(mask.all())) is passes


def test_instances_with_another_spelling_count() -> None:
    instances = {"i": NodeInstance(image_properties={"hw_pmu": "1", "vm_mode": "HV"})}
    table = NodeTable([report("host0", "node0", instances=instances), report("host1", "node1")])
    [plugin] = named_weighers("ImagePropertiesWeigher")
    asked = scheduling_request(
        of=spec(image=Image("i", None, {"hw_pmu": "true", "hw_vm_mode": "hvm"})),
        multipliers={"ImagePropertiesWeigher": 1.0},
    )
    raw = ask_weigher(plugin, HostView(table, MadeUp([1, 1])), asked, GroupPlacement())
    assert raw is not None
    assert raw.tolist() == [2.0, 0.0]
