"""Profiles of simulated hosts: TOML files with the providers of a kind of host, beside this module."""

from pathlib import Path

import msgspec

from roost.agent.drivers.simulated import SimulatedHost, SimulatedNodes, SimulatedPool, SimulatedProvider
from roost.agent.toml_file import read_toml
from roost.model.errors import OperatorError
from roost.model.inventory import Inventory

_FOLDER = Path(__file__).with_name("profiles")


class HostProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of host: inventory and traits of its root, and the providers below it.

    ``nodes``: the nodes instead, each with a root of its own. ``pools``: sharing providers that serve it.
    """

    inventory: dict[str, Inventory] = {}
    traits: tuple[str, ...] = ()
    providers: tuple[SimulatedProvider, ...] = ()
    nodes: tuple[SimulatedNodes, ...] = ()
    pools: tuple[SimulatedPool, ...] = ()

    def host(self, name: str, traits: tuple[str, ...] = ()) -> SimulatedHost:
        """Return a host of this kind. ``traits``: further traits of its root."""
        return SimulatedHost(
            name,
            self.inventory,
            children=self.providers,
            traits=(*self.traits, *traits),
            nodes=self.nodes,
            pools=self.pools,
        )


def profile_names() -> list[str]:
    """Return the names of the profiles in this package."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read_profile(name: str) -> HostProfile:
    """Read a profile by its name, or by the path of a file, which has a slash. Raises `OperatorError`."""
    if "/" not in name and name not in profile_names():
        raise OperatorError(f"there is no profile {name}; there are: {', '.join(profile_names())}")
    path = Path(name) if "/" in name else _FOLDER / f"{name}.toml"
    try:
        return read_toml(path, HostProfile)
    except (OSError, ValueError) as error:
        raise OperatorError(f"the profile {path} cannot be read: {error}") from error
