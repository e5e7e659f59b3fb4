"""The metadata of the driver's domains: instance, attempt and assignment."""

from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import msgspec

from roost.agent.errors import UnreadableDescription
from roost.model.assignment import Assignment
from roost.model.instance import Instance

NAMESPACE: Final = "urn:roost:instance:1"
"""The XML namespace of the driver's metadata."""

ElementTree.register_namespace("roost", NAMESPACE)


class OwnGuest(msgspec.Struct, frozen=True):
    """The instance of a domain, as its metadata name it."""

    instance: str
    attempt: int
    flavor: str
    assignment: Assignment | None = None


def written(instance: Instance, assignment: Assignment | None) -> Element:
    """Return the element for the metadata of an instance's domain."""
    element = Element(f"{{{NAMESPACE}}}instance", uuid=instance.uuid, attempt=str(instance.attempt))
    element.set("flavor", instance.flavor)
    if assignment is not None:
        ElementTree.SubElement(element, f"{{{NAMESPACE}}}assignment").text = msgspec.json.encode(
            assignment
        ).decode()
    return element


def read(domain: Element) -> OwnGuest | None:
    """Read the metadata of a domain; None for a foreign domain. Raises `UnreadableDescription`."""
    element = domain.find(f"metadata/{{{NAMESPACE}}}instance")
    if element is None:
        return None
    assigned = element.findtext(f"{{{NAMESPACE}}}assignment")
    try:
        return OwnGuest(
            element.attrib["uuid"],
            int(element.attrib["attempt"]),
            element.get("flavor", ""),
            None if assigned is None else msgspec.json.decode(assigned, type=Assignment),
        )
    except (KeyError, ValueError) as error:
        name = domain.findtext("name")
        raise UnreadableDescription(f"the metadata of domain {name} are not the driver's: {error}") from error
