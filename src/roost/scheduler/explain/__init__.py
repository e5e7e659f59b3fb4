"""Why the scheduler decided as it did: found beside the ledger's writer, on a fleet that nobody else uses.

explained   the whole: decides the question again, and puts together what the others find
survey      which conditions each host meets, and which hosts each condition removes in turn: the funnel
misses      hosts that one condition alone keeps from the request
relaxing    single changes of the request with which it may be placed; pairs: two at once
hardware    fewer PCI devices, smaller NUMA cells; asked_again: the question of another spec
proposal    a change, which is tried by deciding it
sentence    the reason in one sentence; wording has its words
weighed     what the best hosts weigh, weigher by weigher
explainer   the process beside; copy: the state in it, and what it answers
scratch     decisions that are taken back
fitting     how many more instances fit; scenario drains and adds hosts for it
"""
