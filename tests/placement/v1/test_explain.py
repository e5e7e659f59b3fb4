"""``/v1/explain``: what the API says of an explanation; the counting itself is tested with the fleet."""

from support.placement_api import uuid_of
from support.v1_api import V1Api, fault_of


def test_an_empty_answer_is_explained(v1: V1Api) -> None:
    for name in "abc":
        v1.provider(name, VCPU=8, DISK_GB=100)
    v1.claim(uuid_of("x"), uuid_of("b"), VCPU=2)
    v1.claim(uuid_of("y"), uuid_of("c"), VCPU=6)
    v1.put(
        f"/resource_providers/{uuid_of('b')}/traits",
        {"traits": ["HW_CPU_X86_AVX"], "resource_provider_generation": v1.generation(uuid_of("b"))},
    )
    found = v1.read("/v1/explain?resources=VCPU:8,DISK_GB:10&required=HW_CPU_X86_AVX&misses=5")
    assert (found["providers"], found["trees"]) == (3, 3)
    assert found["trees_with_candidates"] == {"at_least": 0, "at_most": 0}
    told = {
        step["constraint"]: (step["trees_removed"]["alone"], step["trees_removed"]["in_order"])
        for step in found["constraints"]
    }
    assert told == {
        "10 DISK_GB": (0, 0),
        "8 VCPU": (2, 2),
        "required HW_CPU_X86_AVX": (2, 1),
        "everything from one tree at once": (0, 0),
    }
    first, second = found["misses"]
    assert first["text"] == "wants 8 VCPU, has 6 free on b"
    assert (first["free"], first["distance"], first["provider"]["name"]) == (6, 0.25, "b")
    assert second["text"] == "a lacks trait HW_CPU_X86_AVX"
    assert second["tree"] == {"uuid": uuid_of("a"), "name": "a"}
    assert found["version"] == v1.run(v1.ledger.current()).version


def test_each_kind_of_miss_has_a_sentence(v1: V1Api) -> None:
    v1.provider("a", VCPU=8)
    provider = uuid_of("a")
    v1.put(
        f"/resource_providers/{provider}/aggregates",
        {"aggregates": [uuid_of("agg")], "resource_provider_generation": v1.generation(provider)},
    )
    v1.put(
        f"/resource_providers/{provider}/traits",
        {"traits": ["HW_NUMA_ROOT"], "resource_provider_generation": v1.generation(provider)},
    )
    v1.provider("b")
    sentences = {
        "required=!HW_NUMA_ROOT": "a has forbidden trait HW_NUMA_ROOT",
        f"member_of={uuid_of('other')}": f"a is not in aggregate {uuid_of('other')}",
        f"member_of=!in:{uuid_of('agg')},{uuid_of('other')}": f"a is in forbidden aggregate {uuid_of('agg')}",
        f"in_tree={uuid_of('b')}": f"a is not in the tree of {uuid_of('b')}",
        "root_required=HW_CPU_X86_AVX": "root a lacks trait HW_CPU_X86_AVX",
        "root_required=!HW_NUMA_ROOT": "root a has forbidden trait HW_NUMA_ROOT",
    }
    for query, sentence in sentences.items():
        [miss] = v1.read(f"/v1/explain?resources=VCPU:1&{query}")["misses"]
        assert miss["text"] == sentence
    isolated = "resources_1=VCPU:1&resources_2=VCPU:1&group_policy=isolate"
    [miss] = v1.read(f"/v1/explain?{isolated}")["misses"]
    assert miss["text"] == "a has no provider for each group by itself"


def test_a_limit_of_an_inventory_is_named(v1: V1Api) -> None:
    provider = v1.provider("a")
    body = {"resource_class": "VCPU", "total": 64, "max_unit": 4}
    v1.post(f"/resource_providers/{provider}/inventories", body)
    [miss] = v1.read("/v1/explain?resources=VCPU:8")["misses"]
    assert miss["text"] == "wants 8 VCPU, has 4 free on a, but its max_unit forbids the amount"


def test_misses_are_limited(v1: V1Api) -> None:
    for name in "abc":
        v1.provider(name, VCPU=1)
    assert [len(v1.read(f"/v1/explain?resources=VCPU:8&misses={n}")["misses"]) for n in (0, 2, 9)] == [
        0,
        2,
        3,
    ]


def test_a_query_of_hundreds_of_constraints_is_refused(v1: V1Api) -> None:
    v1.provider("a", VCPU=8)
    groups = "&".join(f"resources_{number}=VCPU:1" for number in range(101))
    answer = v1.fetch(f"/v1/explain?{groups}&group_policy=none")
    assert (fault_of(answer)[0], "at most 100 constraints" in answer.text) == (400, True)
    groups = "&".join(f"resources_{number}=VCPU:1" for number in range(99))
    found = v1.read(f"/v1/explain?{groups}&group_policy=isolate")
    assert found["trees_with_candidates"] == {"at_least": 0, "at_most": 0}


def test_an_amount_that_may_be_split_is_measured_by_the_tree(v1: V1Api) -> None:
    for host in "ab":
        v1.provider(host, DISK_GB=10)
        for node in range(2):
            v1.provider(f"{host}{node}", host, VCPU=8)
    v1.claim(uuid_of("x"), uuid_of("b0"), VCPU=3)
    query = "resources=VCPU:14,DISK_GB:1&can_split=VCPU"
    found = v1.read(f"/v1/explain?{query}")
    assert found["trees_with_candidates"] == {"at_least": 1, "at_most": 1}
    told = {each["constraint"]: each["trees_removed"]["in_order"] for each in found["constraints"]}
    assert told["14 VCPU, may be split"] == 1
    [miss] = found["misses"]
    assert miss["text"] == "wants 14 VCPU, has 13 free on the providers of b together"
    assert (miss["free"], miss["provider"], miss["amount"]) == (13, None, 14)
    isolated = "resources_1=VCPU:5&resources_2=VCPU:5&resources_3=VCPU:1&isolated=_1,_2,_3&group_policy=none"
    assert {miss["text"] for miss in v1.read(f"/v1/explain?{isolated}")["misses"]} == {
        f"{host} has no provider for each of the groups _1 or _2 or _3 by itself" for host in "ab"
    }
