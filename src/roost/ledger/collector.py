"""The garbage collector: objects that a process has loaded are kept from it."""

import gc


def keep_what_is_loaded() -> None:
    """Exempt all objects that exist now from garbage collection.

    A process calls this after it has opened its ledger. Collections that visited all imported and loaded
    objects took 40 to 80 ms, twice a second under load, and delayed every request by that.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
