"""What hosts of several generations tell of themselves is read as it is documented."""

import pytest

from roost.agent.drivers.libvirt.domain_capabilities import expanded_features, read_domain_capabilities
from roost.agent.drivers.libvirt.elements import range_set, ranges
from roost.agent.drivers.libvirt.host_capabilities import MemoryPages, read_host_capabilities
from roost.agent.drivers.libvirt.node_devices import MdevType, read_node_devices
from roost.agent.errors import UnreadableDescription
from support.libvirt_hosts import devices_of, guests_of, host_of


def test_a_cpu_that_is_offline_is_not_there() -> None:
    assert sorted(host_of("westmere").cpus) == [0, 1, 2, 3, 4, 5, 7]


def test_threads_and_pages_of_each_cell_are_read() -> None:
    [first, second] = host_of("skylake").cells
    assert first.pages == (MemoryPages(4, 16777216), MemoryPages(2048, 32768), MemoryPages(1048576, 64))
    assert {cpu.socket for cpu in second.cpus} == {1}
    assert {cpu.id: sorted(cpu.siblings) for cpu in second.cpus}[24] == [8, 24]


def test_architectures_of_guests_are_read() -> None:
    kinds = {kind.arch: kind.domain_types for kind in host_of("altra").guests}
    assert kinds == {"aarch64": ("qemu", "kvm"), "x86_64": ("qemu",)}


def test_what_a_release_does_not_tell_is_not_supported() -> None:
    old, new = guests_of("westmere"), guests_of("milan")
    assert (old.firmwares, old.tpm_models, old.host_model, old.memory_encryption) == (
        frozenset(),
        frozenset(),
        None,
        None,
    )
    assert new.secure_boot
    assert new.tpm_versions == {"2.0"}
    assert new.memory_encryption is not None
    assert new.memory_encryption.most_guests == {"sev": 509, "sev-es": 99}


def test_a_tpm_that_is_only_passed_through_cannot_be_emulated() -> None:
    assert guests_of("virtual").tpm_models == frozenset()


def test_features_that_a_guest_does_not_get_are_left_out() -> None:
    assert "amd-no-ssb" not in guests_of("milan").features
    assert "ibpb" in guests_of("milan").features
    cpu = (
        "<cpu><model>m</model><feature policy='require' name='a'/><feature policy='disable' name='b'/></cpu>"
    )
    assert expanded_features(cpu) == {"a"}


def test_devices_are_read_with_what_they_are_part_of() -> None:
    devices = devices_of("skylake")
    by_address = {each.address: each for each in devices.pci}
    assert by_address["0000:3b:00.0"].dev_type == "type-PF"
    assert by_address["0000:3b:10.2"].dev_type == "type-VF"
    assert by_address["0000:3b:10.2"].parent == "0000:3b:00.0"
    assert by_address["0000:af:00.0"].dev_type == "type-PCI"
    assert (by_address["0000:af:00.0"].vendor_id, by_address["0000:af:00.0"].numa_node) == ("8086", 1)
    assert by_address["0000:86:00.0"].mdev_types == (MdevType("nvidia-222", 14), MdevType("nvidia-226", 8))
    [mediated] = devices.mediated
    assert (mediated.uuid, mediated.parent) == ("4b20d080-1b54-4048-85b3-a6a62d165c01", "pci_0000_87_00_0")


@pytest.mark.parametrize(
    "text",
    ["", "<domain/>", "<capabilities><host/></capabilities>", "<capabilities"],
)
def test_what_is_no_description_of_a_host_is_refused(text: str) -> None:
    with pytest.raises(UnreadableDescription):
        read_host_capabilities(text)


def test_numbers_that_are_none_are_refused_with_what_they_are() -> None:
    with pytest.raises(UnreadableDescription, match="the most vCPUs"):
        read_domain_capabilities("<domainCapabilities><vcpu max='many'/></domainCapabilities>")
    with pytest.raises(UnreadableDescription, match="a PCI address"):
        read_node_devices(["<device><capability type='pci'><bus>x</bus></capability></device>"])


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3,8", {0, 1, 2, 3, 8}), ("0-7,^1-2", {0, 3, 4, 5, 6, 7}), ("", set()), (" 5 , 6", {5, 6})],
)
def test_sets_of_cpus_are_read(text: str, numbers: set[int]) -> None:
    assert range_set(text) == numbers
    assert range_set(ranges(frozenset(numbers))) == numbers


@pytest.mark.parametrize("text", ["x", "3-1", "0-99999999", "1--2"])
def test_what_is_no_set_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        range_set(text)
