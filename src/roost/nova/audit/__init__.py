"""The audit of the bridge: claims that nobody answered for are found, reported, and freed by option.

    unanswered  the claims that nobody answered for: what proves each, pure
    suspects    the instances that may have such a claim
    looks       one look at the traces and claims of suspects
    rounds      the rounds under a lease, and the writes that free

Nova's conductor does not repeat a call of its scheduler. A scheduler that dies between the claim and its
answer, or answers after the conductor has given up, leaves a claim: of a boot, whose instance is in cell0
then; of an evacuation, beside the claim on the host that is down. A claim of an unshelve is not looked for:
the next unshelve is answered with it, and the instance's deletion frees it. One of a resize or migration is
overwritten by Nova's conductor.

A finding is confirmed when two rounds saw the same claim at the same generation. A round in which a database
does not answer confirms nothing.
"""
