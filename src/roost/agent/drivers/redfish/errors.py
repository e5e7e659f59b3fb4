"""What can go wrong with a machine.

ComputeError
└── RedfishError        any failure of a machine or its BMC
    ├── BmcFailed       a BMC did not do what it was asked, or does not answer
    │   └── BmcSilent   it does not answer at all
    └── TooSlow         a machine was not seen on, or off, in time
"""

from roost.agent.errors import ComputeError


class RedfishError(ComputeError):
    """A machine or its BMC failed; the text is one line, without secrets."""


class BmcFailed(RedfishError):
    """A BMC did not do what it was asked."""


class BmcSilent(BmcFailed):
    """A BMC does not answer."""


class TooSlow(RedfishError):
    """A machine was not seen on, or off, within its time."""
