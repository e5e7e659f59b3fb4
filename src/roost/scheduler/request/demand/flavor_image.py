"""`FlavorImage`: settings that a flavor and an image can both give."""

from collections.abc import Collection

from roost.model.spec import Flavor, Image
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.request.image_properties import is_true, with_current_names


class FlavorImage:
    """The extra specs of a flavor and the properties of an image, by setting.

    A setting (``matter``) such as ``cpu_policy`` is the extra spec ``hw:cpu_policy`` and the image property
    ``hw_cpu_policy``.
    """

    def __init__(self, flavor: Flavor, image: Image | None) -> None:
        self.flavor = flavor
        self._written = {} if image is None else image.properties
        self.properties = with_current_names(self._written)
        self._image = "the image" if image is None or image.id is None else f"image {image.id}"

    def of_flavor(self, matter: str, allowed: Collection[str] = (), prefix: str = "hw") -> str | None:
        """Return the flavor's value, None if it has none. Raises `BadRequestSpec` for one not allowed."""
        key = f"{prefix}:{matter}"
        value = self.flavor.extra_specs.get(key)
        if value and allowed and value not in allowed:
            raise self.bad_flavor(key, f"is none of {', '.join(allowed)}")
        return value or None

    def of_image(self, matter: str, allowed: Collection[str] = (), prefix: str = "hw") -> str | None:
        """Return the image's value, None if it has none. Raises `BadRequestSpec` for one not allowed."""
        key = f"{prefix}_{matter}"
        value = self.properties.get(key)
        if value is not None and allowed and value not in allowed:
            raise self.bad_image(key, f"is none of {', '.join(allowed)}")
        return value or None

    def agreed(self, matter: str, allowed: Collection[str] = (), prefix: str = "hw") -> str | None:
        """Return the value of flavor or image, None without any.

        Raises `BadRequestSpec` if their values differ or one is not allowed.
        """
        flavor, image = self.of_flavor(matter, allowed, prefix), self.of_image(matter, allowed, prefix)
        if flavor and image and flavor != image:
            raise self.conflict(matter, prefix)
        return flavor or image

    def agreed_flag(self, matter: str) -> bool:
        """Return whether flavor or image says yes. Raises `BadRequestSpec` if one says yes and one no."""
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
        """Return the error for an extra spec."""
        value = self.flavor.extra_specs.get(key)
        return BadRequestSpec(f"flavor {self.flavor.name}: {key}={value!r} {text}")

    def bad_image(self, key: str, text: str) -> BadRequestSpec:
        """Return the error for an image property, present or not."""
        value = self._as_written(key)
        said = key if value is None else f"{key}={value!r}"
        return BadRequestSpec(f"{self._image}: {said} {text}")

    def conflict(self, matter: str, prefix: str = "hw") -> BadRequestSpec:
        """Return the error for an extra spec and an image property that contradict each other."""
        flavor, image = f"{prefix}:{matter}", f"{prefix}_{matter}"
        return BadRequestSpec(
            f"flavor {self.flavor.name} says {flavor}={self.flavor.extra_specs.get(flavor)!r}, "
            f"{self._image} says {image}={self._as_written(image)!r}"
        )

    def _as_written(self, key: str) -> str | None:
        return self._written.get(key, self.properties.get(key))
