"""Errors of machines and their BMCs.

ComputeError
└── RedfishError        any failure of a machine or its BMC
    ├── BmcFailed       a BMC did not do what it was asked, or does not answer
    │   └── BmcSilent   a BMC does not answer at all
    └── BmcTooSlow      a machine was not on, or off, in time
"""

from roost.agent.errors import ComputeError


class RedfishError(ComputeError):
    """A machine or its BMC failed; the text is one line, without secrets."""


class BmcFailed(RedfishError):
    """A BMC did not do what it was asked."""


class BmcSilent(BmcFailed):
    """A BMC does not answer."""


class BmcTooSlow(RedfishError):
    """A machine was not seen on, or off, within its time."""
