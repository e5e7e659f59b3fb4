"""Shadow mode: the bridge gets a copy of each call of Nova, decides it without a claim, and compares.

    exchange nova, key scheduler ─▶ queue of its own ─▶ copied_calls ─▶ shadow_runs ─▶ comparison_store
                                                                         │
                            decision without a claim ◀─ roost.scheduler ─┤
                            first claim of Nova's scheduler ◀─ placement ┘

Nothing of Nova's is changed: no call is answered, nothing is claimed, and there is no row in ``services``.

copied_calls      copies of the calls from the broker
shadow_runs       a call: decided, then compared with the claim in placement
comparison        a decision beside Nova's: agreement, or the difference with its reason
comparison_store  the comparisons in the bridge's own database
summary           the share of agreement, and the differences by their cause
tables            the table of comparisons
"""
