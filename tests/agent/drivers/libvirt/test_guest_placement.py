"""Whatever a guest is assigned, its domain says that and nothing else, and gives it back when it is read."""

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from roost.agent.drivers.libvirt.domain import GuestOptions, GuestParts, domain_xml
from roost.agent.drivers.libvirt.elements import range_set, ranges
from roost.agent.drivers.libvirt.guests import read_domain
from roost.model.assignment import AssignedCell, Assignment
from roost.model.spec import Flavor
from support.libvirt_hosts import guests_of, instance_of

GUESTS = guests_of("milan")
SHARED = {0: frozenset({0, 1}), 1: frozenset({32, 33})}


@st.composite
def assignments(draw: st.DrawFn) -> tuple[Flavor, Assignment]:
    """A guest of a few cells, some of whose vCPUs have CPUs of their own."""
    cells, vcpu = [], 0
    free = {host: [*range(32 * host + 2, 32 * host + 32)] for host in SHARED}
    for guest in range(draw(st.integers(1, 3))):
        host = draw(st.sampled_from(sorted(SHARED)))
        count = draw(st.integers(1, 5))
        vcpus = range(vcpu, vcpu + count)
        vcpu += count
        own = [each for each in vcpus if draw(st.booleans())]
        cpus = draw(st.permutations(free[host]))[: len(own)]
        free[host] = [each for each in free[host] if each not in cpus]
        page = draw(st.sampled_from([None, 4, 2048]))
        pinned = tuple(zip(own, cpus, strict=True))
        cells.append(AssignedCell(guest, host, count - len(own), pinned, (), (), 64 * (guest + 1), page))
    memory = sum(cell.memory_mb for cell in cells)
    return Flavor("f", vcpu, memory), Assignment("node", tuple(cells))


@given(assignments())
def test_each_vcpu_has_the_cpus_that_it_was_assigned(assigned: tuple[Flavor, Assignment]) -> None:
    flavor, assignment = assigned
    instance = instance_of(flavor=flavor, assignment=assignment)
    text = domain_xml(instance, GUESTS, GuestOptions(), GuestParts(), SHARED)
    domain = ElementTree.fromstring(text)
    pins = {int(each.get("vcpu", "")): range_set(each.get("cpuset", "")) for each in domain.iter("vcpupin")}
    pinned = {vcpu: cpu for cell in assignment.cells for vcpu, cpu in cell.pinned}
    assert pins.keys() == set(range(flavor.vcpus))
    assert {vcpu: {cpu} for vcpu, cpu in pinned.items()} == {vcpu: pins[vcpu] for vcpu in pinned}
    cells = domain.findall("cpu/numa/cell")
    for cell, described in zip(assignment.cells, cells, strict=True):
        vcpus = range_set(described.get("cpus", ""))
        assert len(vcpus) == cell.shared + len(cell.pinned)
        floating = vcpus - {vcpu for vcpu, _ in cell.pinned}
        assert all(pins[vcpu] == SHARED[cell.host] for vcpu in floating)
    assert sum(int(each.get("memory", "")) for each in cells) == flavor.memory_mb
    large = {str(cell.guest) for cell in assignment.cells if cell.page_size_kb == 2048}
    assert {each.get("nodeset") for each in domain.iter("page")} == large
    own = read_domain(text, active=True).own
    assert own is not None
    assert own.assignment == assignment


@given(st.frozensets(st.integers(0, 300)))
def test_a_set_of_cpus_is_written_as_it_is_read(cpus: frozenset[int]) -> None:
    assert range_set(ranges(cpus)) == cpus
