"""`FlavorImage`: what a flavor and an image say on the same matter."""

from collections.abc import Collection

from roost.model.spec import Flavor, Image
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.request.image_properties import is_true, with_current_names


class FlavorImage:
    """The extra specs of a flavor beside the properties of an image.

    A matter such as ``cpu_policy`` is the extra spec ``hw:cpu_policy`` and the property ``hw_cpu_policy``.
    """

    def __init__(self, flavor: Flavor, image: Image | None) -> None:
        self.flavor = flavor
        self._written = {} if image is None else image.properties
        self.properties = with_current_names(self._written)
        self._image = "the image" if image is None or image.id is None else f"image {image.id}"

    def of_flavor(self, matter: str, allowed: Collection[str] = (), prefix: str = "hw") -> str | None:
        """What the flavor says; None if nothing. Raises `BadRequestSpec` for a value that is not allowed."""
        key = f"{prefix}:{matter}"
        value = self.flavor.extra_specs.get(key)
        if value and allowed and value not in allowed:
            raise self.bad_flavor(key, f"is none of {', '.join(allowed)}")
        return value or None

    def of_image(self, matter: str, allowed: Collection[str] = (), prefix: str = "hw") -> str | None:
        """What the image says; None if nothing. Raises `BadRequestSpec` for a value that is not allowed."""
        key = f"{prefix}_{matter}"
        value = self.properties.get(key)
        if value is not None and allowed and value not in allowed:
            raise self.bad_image(key, f"is none of {', '.join(allowed)}")
        return value or None

    def agreed(self, matter: str, allowed: Collection[str] = (), prefix: str = "hw") -> str | None:
        """What either says. Raises `BadRequestSpec` if both say different things, or what is not allowed."""
        flavor, image = self.of_flavor(matter, allowed, prefix), self.of_image(matter, allowed, prefix)
        if flavor and image and flavor != image:
            raise self.conflict(matter, prefix)
        return flavor or image

    def agreed_flag(self, matter: str) -> bool:
        """Whether either says yes. Raises `BadRequestSpec` if one says yes and the other one says no."""
        said = [
            is_true(value)
            for value in (
                self.flavor.extra_specs.get(f"hw:{matter}"),
                self.properties.get(f"hw_{matter}"),
            )
            if value is not None
        ]
        if len(set(said)) > 1:
            raise self.conflict(matter)
        return any(said)

    def bad_flavor(self, key: str, text: str) -> BadRequestSpec:
        """The error for an extra spec."""
        value = self.flavor.extra_specs.get(key)
        return BadRequestSpec(f"flavor {self.flavor.name}: {key}={value!r} {text}")

    def bad_image(self, key: str, text: str) -> BadRequestSpec:
        """The error for a property, present or not."""
        value = self._as_written(key)
        said = key if value is None else f"{key}={value!r}"
        return BadRequestSpec(f"{self._image}: {said} {text}")

    def conflict(self, matter: str, prefix: str = "hw") -> BadRequestSpec:
        """The error for an extra spec and a property that do not go together."""
        flavor, image = f"{prefix}:{matter}", f"{prefix}_{matter}"
        return BadRequestSpec(
            f"flavor {self.flavor.name} says {flavor}={self.flavor.extra_specs.get(flavor)!r}, "
            f"{self._image} says {image}={self._as_written(image)!r}"
        )

    def _as_written(self, key: str) -> str | None:
        return self._written.get(key, self.properties.get(key))
