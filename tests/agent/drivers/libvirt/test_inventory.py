"""The inventory, traits and providers of hosts of several generations."""

import pytest

from roost.agent.drivers.libvirt.domain_capabilities import DomainCapabilities
from roost.agent.drivers.libvirt.inventory import (
    Amounts,
    CpuSets,
    MdevOptions,
    MdevSource,
    Ratios,
    Reserved,
    UsedCpus,
    mdev_sources,
    root_inventory,
)
from roost.agent.drivers.libvirt.providers import encryption_providers, fill, mdev_provider
from roost.agent.drivers.libvirt.traits import host_traits
from roost.agent.errors import UnusableOptions
from roost.agent.provider_tree import ProviderTree
from roost.model.inventory import Inventory
from support.libvirt_hosts import devices_of, guests_of, host_of

ROOT = "11111111-1111-4111-8111-111111111111"


def traits_of(name: str) -> frozenset[str]:
    guests = guests_of(name)
    return host_traits(host_of(name), guests, guests.features, with_images=True)


def test_traits_of_a_host_of_2018() -> None:
    assert traits_of("skylake") >= {
        "HW_ARCH_X86_64",
        "COMPUTE_ARCH_X86_64",
        "HW_CPU_HYPERTHREADING",
        "HW_CPU_X86_AVX512F",
        "HW_CPU_X86_SSE41",
        "HW_CPU_X86_AESNI",
        "HW_CPU_X86_FMA3",
        "HW_CPU_X86_CLMUL",
        "HW_CPU_X86_VMX",
        "HW_CPU_X86_INTEL_VMX",
        "HW_CPU_X86_INTEL_SPEC_CTRL",
        "HW_CPU_X86_TSX",
        "COMPUTE_FIRMWARE_UEFI",
        "COMPUTE_FIRMWARE_BIOS",
        "COMPUTE_GRAPHICS_MODEL_QXL",
        "COMPUTE_STORAGE_BUS_SATA",
        "COMPUTE_NET_VIF_MODEL_VIRTIO",
        "COMPUTE_SOCKET_PCI_NUMA_AFFINITY",
        "COMPUTE_IMAGE_TYPE_QCOW2",
    }
    assert not {
        "COMPUTE_SECURITY_UEFI_SECURE_BOOT",
        "COMPUTE_STORAGE_BUS_IDE",
        "COMPUTE_SECURITY_TPM_2_0",
    } & (traits_of("skylake"))


def test_traits_of_a_host_of_2021() -> None:
    milan = traits_of("milan")
    assert milan >= {
        "HW_CPU_X86_SVM",
        "HW_CPU_X86_AMD_SVM",
        "HW_CPU_X86_AMD_IBPB",
        "HW_CPU_X86_BMI",
        "HW_CPU_X86_SHA",
        "COMPUTE_SECURITY_UEFI_SECURE_BOOT",
        "COMPUTE_SECURITY_TPM_2_0",
        "COMPUTE_SECURITY_TPM_CRB",
        "COMPUTE_SECURITY_TPM_TIS",
    }
    assert "HW_CPU_X86_AMD_NO_SSB" not in milan


def test_traits_of_other_architectures() -> None:
    altra = traits_of("altra")
    assert altra >= {"HW_ARCH_AARCH64", "COMPUTE_ARCH_AARCH64", "COMPUTE_ARCH_X86_64"}
    assert not {each for each in altra if each.startswith("HW_CPU_X86_")}
    assert "HW_CPU_HYPERTHREADING" not in altra
    assert "COMPUTE_FIRMWARE_BIOS" not in altra


def test_a_hypervisor_without_domain_capabilities_promises_what_its_host_tells() -> None:
    westmere = host_of("westmere")
    found = host_traits(westmere, DomainCapabilities("test", "x86_64"), westmere.features, with_images=False)
    assert found == {
        "HW_ARCH_X86_64",
        "COMPUTE_ARCH_X86_64",
        "HW_CPU_X86_CLMUL",
        "HW_CPU_X86_VMX",
        "HW_CPU_X86_INTEL_VMX",
        "HW_CPU_X86_INTEL_PCID",
        "COMPUTE_SOCKET_PCI_NUMA_AFFINITY",
    }


def test_without_sets_of_cpus_all_are_shared() -> None:
    assert CpuSets().of(host_of("westmere")) == UsedCpus(frozenset({0, 1, 2, 3, 4, 5, 7}), frozenset())


def test_sets_of_cpus_divide_a_host() -> None:
    sets = CpuSets(frozenset(range(4)), frozenset(range(4, 8)))
    inventory = root_inventory(sets.of(host_of("milan")), Amounts(262144, 1000), Reserved(1), Ratios(), {})
    assert inventory["VCPU"] == Inventory(4, reserved=1, max_unit=4)
    assert inventory["PCPU"] == Inventory(4, max_unit=4)
    dedicated = CpuSets(dedicated=frozenset({2})).of(host_of("milan"))
    assert root_inventory(dedicated, Amounts(1024, None), Reserved(), Ratios(), {}).keys() == {
        "PCPU",
        "MEMORY_MB",
    }


@pytest.mark.parametrize(
    ("sets", "text"),
    [
        (CpuSets(frozenset({0, 1}), frozenset({1, 2})), r"\[1\] are in both"),
        (CpuSets(frozenset({0, 6})), r"\[6\] of the options are not online"),
    ],
)
def test_sets_of_cpus_that_do_not_fit_the_host_are_refused(sets: CpuSets, text: str) -> None:
    with pytest.raises(UnusableOptions, match=text):
        sets.of(host_of("westmere"))


def test_ratios_of_options_come_before_those_of_placement_and_these_before_the_first() -> None:
    ratios = Ratios({"MEMORY_MB": 1.5}, {"VCPU": 4.0, "MEMORY_MB": 1.0, "DISK_GB": 1.0})
    cpus = UsedCpus(frozenset({0, 1}), frozenset())
    there = {"VCPU": {"allocation_ratio": 8.0}, "MEMORY_MB": {"allocation_ratio": 3.0}}
    again = root_inventory(cpus, Amounts(1024, 10), Reserved(), ratios, there)
    assert {name: each.allocation_ratio for name, each in again.items()} == {
        "VCPU": 8.0,
        "MEMORY_MB": 1.5,
        "DISK_GB": 1.0,
    }
    assert root_inventory(cpus, Amounts(1024, 10), Reserved(), ratios, {})["VCPU"].allocation_ratio == 4.0


def test_memory_of_guests_of_others_is_reserved_and_no_more_than_there_is() -> None:
    cpus = UsedCpus(frozenset({0}), frozenset())
    some = root_inventory(cpus, Amounts(4096, None, 1024), Reserved(), Ratios(), {})
    assert some["MEMORY_MB"].reserved == 512 + 1024
    assert (
        root_inventory(cpus, Amounts(4096, None, 9999), Reserved(), Ratios(), {})["MEMORY_MB"].capacity == 0
    )


def test_a_gpu_is_a_provider_with_what_it_can_make_of_the_first_type_that_is_enabled() -> None:
    options = MdevOptions(("nvidia-226", "nvidia-222"), {"nvidia-226": "CUSTOM_VGPU_LARGE"})
    sources = mdev_sources(devices_of("skylake"), options)
    assert sources == (
        MdevSource("pci_0000_86_00_0", "nvidia-226", "CUSTOM_VGPU_LARGE", 8),
        MdevSource("pci_0000_87_00_0", "nvidia-226", "CUSTOM_VGPU_LARGE", 8),
    )
    assert mdev_provider(sources[0]).traits == {"CUSTOM_NVIDIA_226"}


def test_a_gpu_whose_guests_have_another_type_is_no_provider() -> None:
    sources = mdev_sources(devices_of("skylake"), MdevOptions(("nvidia-222",)))
    assert sources == (MdevSource("pci_0000_86_00_0", "nvidia-222", "VGPU", 14),)


def test_providers_of_gpus_and_encryption_come_and_go() -> None:
    tree = ProviderTree()
    tree.new_root("compute", ROOT)
    tree.new_child("compute_0000:81:00.0", "compute")
    gpus = [mdev_provider(each) for each in mdev_sources(devices_of("skylake"), MdevOptions(("nvidia-222",)))]
    encryption = encryption_providers(guests_of("milan").memory_encryption)
    fill(tree, "compute", {"VCPU": Inventory(4)}, frozenset({"HW_ARCH_X86_64"}), [*gpus, *encryption])
    names = {tree.data(uuid).name for uuid in tree.get_provider_uuids()}
    assert names == {
        "compute",
        "compute_0000:81:00.0",
        "compute_pci_0000_86_00_0",
        "compute_amd_sev",
        "compute_amd_sev_es",
    }
    assert tree.data("compute_amd_sev_es").traits == {"HW_CPU_X86_AMD_SEV_ES"}
    assert tree.data("compute_amd_sev").inventory["MEM_ENCRYPTION_CONTEXT"]["total"] == 509
    fill(tree, "compute", {"VCPU": Inventory(4)}, frozenset(), [])
    assert {tree.data(uuid).name for uuid in tree.get_provider_uuids()} == {"compute", "compute_0000:81:00.0"}
