"""Custom names, and traits that come with them."""

import pytest

from roost.ledger import Ledger
from roost.placement.commands.names import AddResourceClass, DeleteTrait, RenameResourceClass
from roost.placement.commands.providers import CreateProvider
from roost.placement.commands.traits_and_aggregates import SetTraits
from roost.placement.errors import BadRequest, ConcurrentUpdate, Conflict
from roost.storage import Database
from support.placement_api import Api, uuid_of

A = uuid_of("a")


def test_a_renamed_class_is_there_once(api: Api) -> None:
    api.execute(AddResourceClass("CUSTOM_OLD"))
    api.execute(RenameResourceClass("CUSTOM_OLD", "CUSTOM_NEW"))
    classes = api.run(api.ledger.current()).resource_classes
    assert "CUSTOM_NEW" in classes and "CUSTOM_OLD" not in classes
    api.execute(RenameResourceClass("CUSTOM_NEW", "CUSTOM_NEW"))
    with pytest.raises(Conflict):
        api.execute(RenameResourceClass("CUSTOM_NEW", "VCPU"))


def test_a_class_is_renamed_only_with_all_that_is_held(api: Api) -> None:
    api.execute(AddResourceClass("CUSTOM_OLD"))
    api.provider("a", CUSTOM_OLD=4)
    api.claim(uuid_of("c1"), A, CUSTOM_OLD=1)
    api.claim(uuid_of("c2"), A, CUSTOM_OLD=1)
    with pytest.raises(ConcurrentUpdate):
        api.execute(RenameResourceClass("CUSTOM_OLD", "CUSTOM_NEW", (uuid_of("c1"), uuid_of("gone"))))
    assert api.get(f"/resource_providers/{A}/usages")["usages"] == {"CUSTOM_OLD": 2}


def test_a_renamed_class_is_the_same_for_another_worker(api: Api) -> None:
    api.execute(AddResourceClass("CUSTOM_OLD"))
    api.execute(RenameResourceClass("CUSTOM_OLD", "CUSTOM_NEW"))

    async def loaded() -> dict[str, int]:
        database = Database(f"sqlite:///{api.path}")
        ledger = await Ledger.open(database)
        classes = (await ledger.current()).resource_classes
        await ledger.close()
        await database.close()
        return classes

    assert api.run(loaded()) == api.run(api.ledger.current()).resource_classes


def test_custom_traits_are_added_on_request_only(api: Api) -> None:
    api.execute(CreateProvider(A, "a"))
    with pytest.raises(BadRequest, match="CUSTOM_X"):
        api.execute(SetTraits(A, frozenset({"CUSTOM_X"})))
    assert api.execute(SetTraits(A, frozenset({"CUSTOM_X"}), add_custom=True)) == 1
    with pytest.raises(BadRequest):
        api.execute(SetTraits(A, frozenset({"CUSTOM_Y", "OTHER"}), add_custom=True))
    assert "CUSTOM_Y" not in api.run(api.ledger.current()).traits
    with pytest.raises(Conflict):
        api.execute(DeleteTrait("CUSTOM_X"))
