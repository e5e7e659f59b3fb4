"""What can go wrong on a compute host.

ComputeError
├── BuildFailed         the driver could not build an instance; the text is the reason
├── BadProviderName     a provider has a name or aggregate that cannot be stored
└── NoSuchProvider      a provider tree is asked for a provider that it does not have
"""


class ComputeError(Exception):
    """Any failure of an agent or driver."""


class BuildFailed(ComputeError):
    """The driver could not build an instance; the text is the reason, as the user will read it."""


class BadProviderName(ComputeError):
    """A provider has a name or an aggregate that cannot be stored; the text shows it."""


class NoSuchProvider(ComputeError, KeyError):
    """A provider tree is asked for a provider that it does not have."""
