"""Profiles of simulated hosts: files that say which providers a kind of host has, beside this module."""

from pathlib import Path

import msgspec

from roost.agent.drivers.simulated import SimulatedHost, SimulatedNodes, SimulatedPool, SimulatedProvider
from roost.agent.toml_file import read_toml
from roost.model.errors import OperatorError
from roost.model.inventory import Inventory

_FOLDER = Path(__file__).with_name("profiles")


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a kind of host has: inventory and traits of its root, and the providers below; or ``nodes``, each
    with a root of its own. ``pools``: sharing providers that serve it."""

    inventory: dict[str, Inventory] = {}
    traits: tuple[str, ...] = ()
    providers: tuple[SimulatedProvider, ...] = ()
    nodes: tuple[SimulatedNodes, ...] = ()
    pools: tuple[SimulatedPool, ...] = ()

    def host(self, name: str, traits: tuple[str, ...] = ()) -> SimulatedHost:
        """A host of this kind. ``traits``: further ones of its root."""
        return SimulatedHost(
            name,
            self.inventory,
            children=self.providers,
            traits=(*self.traits, *traits),
            nodes=self.nodes,
            pools=self.pools,
        )


def profile_names() -> list[str]:
    """The names of the profiles that there are."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read_profile(name: str) -> Profile:
    """A profile by its name, or by the path of a file, which has a slash. Raises `OperatorError`."""
    if "/" not in name and name not in profile_names():
        raise OperatorError(f"there is no profile {name}; there are: {', '.join(profile_names())}")
    path = Path(name) if "/" in name else _FOLDER / f"{name}.toml"
    try:
        return read_toml(path, Profile)
    except (OSError, ValueError) as error:
        raise OperatorError(f"the profile {path} cannot be read: {error}") from error
