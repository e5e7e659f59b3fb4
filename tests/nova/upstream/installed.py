"""Which Nova this is."""

from importlib.metadata import version


def nova_version() -> str:
    """The version of the installed Nova."""
    return version("nova")
