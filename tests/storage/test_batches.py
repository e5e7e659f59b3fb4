"""Works of one type that wait together are performed together, and find what they would find alone."""

from collections.abc import Collection, Sequence

import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.storage.batches import perform

performed: list[list[str]] = []


class Put(msgspec.Struct, frozen=True):
    """A work of which several can be performed together."""

    name: str

    @property
    def keys(self) -> Collection[str]:
        return (self.name[0],)

    def __call__(self, connection: Connection) -> str:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[Put]") -> list[str]:
        performed.append([work.name for work in works])
        return [f"put {work.name}" for work in works]


class Other(msgspec.Struct, frozen=True):
    """A work that is performed by itself."""

    name: str

    def __call__(self, connection: Connection) -> str:
        performed.append([self.name])
        return f"other {self.name}"


@pytest.mark.parametrize(
    ("names", "calls"),
    [
        ("a1", [["a1"]]),
        ("a1 b1 c1", [["a1", "b1", "c1"]]),
        ("a1 +x b1 +y", [["a1", "b1"], ["+x"], ["+y"]]),
        ("a1 b1 a2 c1 a3", [["a1", "b1"], ["a2", "c1"], ["a3"]]),
    ],
)
def test_those_without_a_common_key_are_performed_together(names: str, calls: list[list[str]]) -> None:
    performed.clear()
    works = [Other(name) if name.startswith("+") else Put(name) for name in names.split()]
    with sa.create_engine("sqlite://").connect() as connection:
        results = perform(connection, works)
    assert performed == calls
    assert results == [f"{'other' if n.startswith('+') else 'put'} {n}" for n in names.split()]
