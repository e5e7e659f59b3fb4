"""The domain of an instance has what was claimed, assigned and asked for, and the driver knows it again."""

from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import msgspec
import pytest

from roost.agent.drivers.libvirt.domain import GuestOptions, GuestParts, domain_name, domain_uuid, domain_xml
from roost.agent.drivers.libvirt.guests import OwnGuest, read_domain
from roost.agent.errors import BuildFailed, UnreadableDescription
from roost.model.assignment import AssignedCell, AssignedDevices, Assignment
from roost.model.instance import Instance
from roost.model.spec import Flavor, Image
from support.libvirt_hosts import guests_of, instance_of

UUID = "7f0c6a0e-5d7e-4f0b-9f0f-0d9a1d5f9a11"
PINNED = Assignment(
    "node",
    (
        AssignedCell(0, 1, pinned=((0, 9), (1, 25)), reserved=(10,), memory_mb=1024, page_size_kb=2048),
        AssignedCell(1, 0, shared=2, memory_mb=1024, page_size_kb=4),
    ),
    (AssignedDevices("r", "pool", 1, ("0000:3b:10.2",)),),
)


def built(
    instance: Instance, host: str = "skylake", options: GuestOptions | None = None, **parts: object
) -> Element:
    shared = {0: frozenset({0, 16}), 1: frozenset({8})}
    told = GuestParts(**parts)  # type: ignore[arg-type]
    return ElementTree.fromstring(
        domain_xml(instance, guests_of(host), options or GuestOptions(), told, shared)
    )


def asking(image: dict[str, str] | None = None, **extra_specs: str) -> Instance:
    specs = {name.replace("__", ":"): value for name, value in extra_specs.items()}
    flavor = Flavor("asking", 1, 64, extra_specs=specs)
    return instance_of(flavor=flavor, image=Image(properties=image or {}))


def attributes(domain: Element, path: str) -> list[dict[str, str]]:
    return [each.attrib for each in domain.findall(path)]


def test_a_domain_is_known_again() -> None:
    instance = instance_of(UUID, Flavor("small", 4, 64), assignment=PINNED, attempt=3)
    text = ElementTree.tostring(built(instance, mdevs=("m",)), encoding="unicode")
    read = read_domain(text, active=True)
    assert read.own == OwnGuest(UUID, 3, "small", PINNED)
    assert (read.name, read.memory_mb, read.mdevs) == (f"roost-{UUID}", 64, {"m"})
    assert read.addresses == {"0000:3b:10.2"}
    assert read.pinned == {9, 25, 0, 16}
    assert ElementTree.fromstring(text).findtext("uuid") == UUID


def test_a_domain_of_others_is_not_ours_and_a_torn_one_is_refused() -> None:
    others = "<domain><name>roost-x</name><memory unit='MiB'>5</memory></domain>"
    assert read_domain(others, active=False).own is None
    torn = "<domain><metadata><r:instance xmlns:r='urn:roost:instance:1' uuid='i'/></metadata></domain>"
    with pytest.raises(UnreadableDescription, match="not the driver's"):
        read_domain(torn, active=True)


def test_vcpus_emulator_and_memory_are_where_they_were_assigned() -> None:
    domain = built(instance_of(UUID, Flavor("pinned", 4, 2048), assignment=PINNED))
    assert attributes(domain, "cputune/vcpupin") == [
        {"vcpu": "0", "cpuset": "9"},
        {"vcpu": "1", "cpuset": "25"},
        {"vcpu": "2", "cpuset": "0,16"},
        {"vcpu": "3", "cpuset": "0,16"},
    ]
    assert attributes(domain, "cputune/emulatorpin") == [{"cpuset": "10"}]
    assert attributes(domain, "numatune/memnode") == [
        {"cellid": "0", "mode": "strict", "nodeset": "1"},
        {"cellid": "1", "mode": "strict", "nodeset": "0"},
    ]
    assert attributes(domain, "cpu/numa/cell") == [
        {"id": "0", "cpus": "0-1", "memory": "1024", "unit": "MiB"},
        {"id": "1", "cpus": "2-3", "memory": "1024", "unit": "MiB"},
    ]
    # The pages of the second cell are the host's smallest, which need no word.
    assert attributes(domain, "memoryBacking/hugepages/page") == [
        {"size": "2048", "unit": "KiB", "nodeset": "0"}
    ]


def test_a_flavor_may_say_which_vcpus_are_in_a_cell() -> None:
    cells = (AssignedCell(0, 0, shared=1, memory_mb=32), AssignedCell(1, 1, shared=2, memory_mb=32))
    flavor = Flavor("named", 3, 64, extra_specs={"hw:numa_cpus.0": "1", "hw:numa_cpus.1": "0,2"})
    domain = built(instance_of(flavor=flavor, assignment=Assignment("node", cells)))
    assert [each["cpus"] for each in attributes(domain, "cpu/numa/cell")] == ["1", "0,2"]
    assert attributes(domain, "cputune/vcpupin")[0] == {"vcpu": "0", "cpuset": "8"}


def test_a_guest_without_an_assignment_floats_over_the_shared_cpus() -> None:
    domain = built(instance_of(), options=GuestOptions(shared_cpus=frozenset({2, 3})))
    assert attributes(domain, "vcpu") == [{"placement": "static", "cpuset": "2,3"}]
    assert domain.find("cputune") is None
    assert domain.find("numatune") is None


def test_devices_are_passed_by_their_addresses() -> None:
    domain = built(instance_of(assignment=PINNED, flavor=Flavor("f", 4, 64)), mdevs=("a", "b"))
    assert attributes(domain, "devices/hostdev/source/address") == [
        {"domain": "0x0000", "bus": "0x3b", "slot": "0x10", "function": "0x2"},
        {"uuid": "a"},
        {"uuid": "b"},
    ]


def test_the_disk_is_on_the_bus_that_the_image_asks_for() -> None:
    domain = built(asking({"hw_disk_bus": "scsi"}), disk=Path("/i/disk"), console=Path("/i/console"))
    assert attributes(domain, "devices/disk/target") == [{"dev": "sda", "bus": "scsi"}]
    assert attributes(domain, "devices/disk/driver") == [{"name": "qemu", "type": "qcow2"}]
    assert attributes(domain, "devices/serial/source") == [{"path": "/i/console"}]


def test_secure_boot_tpm_and_video_are_given_where_the_host_has_them() -> None:
    asked = asking({"hw_video_model": "qxl"}, os__secure_boot="required", hw__tpm_version="2.0")
    domain = built(asked, "milan")
    assert attributes(domain, "os") == [{"firmware": "efi"}]
    assert attributes(domain, "os/loader") == [{"secure": "yes"}]
    assert attributes(domain, "features/smm") == [{"state": "on"}]
    assert attributes(domain, "devices/tpm/backend") == [{"type": "emulator", "version": "2.0"}]
    assert attributes(domain, "devices/video/model") == [{"type": "qxl"}]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (asking(os__secure_boot="required"), "secure boot"),
        (asking(hw__tpm_version="2.0"), "a TPM 2.0"),
        (asking({"hw_video_model": "gop"}), "graphics model gop"),
    ],
)
def test_what_a_host_cannot_give_fails_the_build_for_another_host(asked: Instance, text: str) -> None:
    with pytest.raises(BuildFailed, match=text) as failed:
        built(asked)
    assert (failed.value.code, failed.value.retryable) == ("UnsupportedGuest", True)


def test_memory_is_encrypted_by_what_the_host_tells() -> None:
    domain = built(asking(), "milan", encryption="sev-es")
    assert domain.findtext("launchSecurity/cbitpos") == "51"
    assert domain.findtext("launchSecurity/policy") == "0x0007"
    assert domain.find("memoryBacking/locked") is not None
    assert attributes(domain, "os") == [{"firmware": "efi"}]
    with pytest.raises(BuildFailed, match="encrypt memory"):
        built(asking(), "skylake", encryption="sev")


def test_equal_inputs_make_equal_domains() -> None:
    instance = instance_of(UUID, Flavor("pinned", 4, 2048), assignment=PINNED)
    one, other = (domain_xml(instance, guests_of("milan"), GuestOptions(), GuestParts()) for _ in "ab")
    assert one == other


@pytest.mark.parametrize("name", ["../x", "", "a/b", "-x"])
def test_a_name_that_is_no_folder_is_refused_for_good(name: str) -> None:
    with pytest.raises(BuildFailed) as failed:
        domain_name(name)
    assert not failed.value.retryable


def test_an_instance_of_an_earlier_version_is_refused() -> None:
    old = msgspec.structs.replace(instance_of(), spec=None)
    with pytest.raises(BuildFailed, match="no flavor"):
        built(old)
    assert domain_uuid("i-0") == domain_uuid("i-0") != domain_uuid("i-1")
