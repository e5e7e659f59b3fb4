"""The one algorithm of the scheduler: filter, weigh, pick, claim, next on refusal, alternates.

It does no I/O.

selection     chooses hosts, one instance after another
alternates    other hosts for each instance that was placed
replacement   the use of an alternate: checked again, then the claim is swapped to it
claim_result  the result of a claim: every error is mapped to one there
outcome       what a run asks for and what comes of it
bounds        how many claims and candidates a run may try, for how long, and with how much work
"""
