"""What an instance asks of each profile of simulated hosts, and what it holds then."""

from typing import NamedTuple

STORAGE = "storage"
"""The sharing provider of the profile shared-storage."""


class Case(NamedTuple):
    """The extra specs of a flavor, and what an instance of it holds, by the suffix of the provider."""

    extra_specs: dict[str, str]
    holds: dict[str, dict[str, int]]


COMPUTE = {"VCPU": 2, "MEMORY_MB": 64, "DISK_GB": 1}
NO_COMPUTE = {f"resources:{name}": "0" for name in COMPUTE}

CASES = {
    "flat": Case({}, {"": COMPUTE}),
    "numa-sriov": Case(
        {
            "resources_NET:SRIOV_NET_VF": "1",
            "trait_NET:CUSTOM_PHYSNET_PRIVATE": "required",
            "resources_CPU:VCPU": "2",
            "resources_CPU:MEMORY_MB": "64",
            "resources:VCPU": "0",
            "resources:MEMORY_MB": "0",
            "group_policy": "none",
        },
        {"": {"DISK_GB": 1}, "numa": {"VCPU": 2, "MEMORY_MB": 64}, "pf-86-00-0": {"SRIOV_NET_VF": 1}},
    ),
    "vgpu-libvirt": Case(
        {"resources:CUSTOM_VGPU_LARGE": "2"}, {"": COMPUTE, "pci_0000_86_00_0": {"CUSTOM_VGPU_LARGE": 2}}
    ),
    "vgpu-flat": Case({"resources:VGPU": "1"}, {"": {**COMPUTE, "VGPU": 1}}),
    "dedicated-cpus": Case({"hw:cpu_policy": "dedicated"}, {"": {"PCPU": 2, "MEMORY_MB": 64, "DISK_GB": 1}}),
    "numa-dedicated": Case(
        {
            "resources_CPU:PCPU": "2",
            "resources_CPU:MEMORY_MB": "64",
            "resources:VCPU": "0",
            "resources:MEMORY_MB": "0",
            "group_policy": "none",
        },
        {"": {"DISK_GB": 1}, "numa": {"PCPU": 2, "MEMORY_MB": 64}},
    ),
    "vgpu-xenapi": Case({"resources:VGPU": "1"}, {"": COMPUTE, "gpu-group-1": {"VGPU": 1}}),
    "fpga": Case(
        {"resources_FPGA:FPGA": "1", "trait_FPGA:CUSTOM_FPGA_FUNCTION_CRYPTO": "required"},
        {"": COMPUTE, "fpga-86-00-0": {"FPGA": 1}},
    ),
    "bare-metal": Case(
        {**NO_COMPUTE, "resources:CUSTOM_BAREMETAL_GPU": "1", "trait:CUSTOM_NVLINK": "required"},
        {"node": {"CUSTOM_BAREMETAL_GPU": 1}},
    ),
    "persistent-memory": Case({"hw:pmem": "4GB"}, {"": {**COMPUTE, "CUSTOM_PMEM_NAMESPACE_4GB": 1}}),
    "shared-storage": Case({}, {"": {"VCPU": 2, "MEMORY_MB": 64}, STORAGE: {"DISK_GB": 1}}),
    "memory-encryption": Case(
        {
            "resources_SEV:MEM_ENCRYPTION_CONTEXT": "1",
            "trait_SEV:HW_CPU_X86_AMD_SEV_ES": "required",
        },
        {"": COMPUTE, "amd-sev-es": {"MEM_ENCRYPTION_CONTEXT": 1}},
    ),
}
