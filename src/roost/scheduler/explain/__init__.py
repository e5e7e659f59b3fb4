"""Explanations of the scheduler's decisions, found beside the ledger's writer on a fleet of their own.

explained     a whole explanation: decides the request again and combines the other modules' results
survey        the conditions that each host meets, and the hosts that each removes in turn: the funnel
misses        hosts that one condition alone excludes
relaxations   single changes with which the request may be placed; pairs: two changes at once
hardware      such changes of hardware: fewer PCI devices, smaller NUMA cells
asked_again   the request with another spec
proposal      a change, and its test by deciding the changed request
sentence      the reason in one sentence; phrases: the words of conditions
weighed       the weights of the best hosts, weigher by weigher
every_host    all hosts with a tree, whatever is requested
scratch       decisions that are taken back
explainer     the process that explains refusals; copy: its copy of the scheduler's state
explanations  the explanations in progress of one scheduler
capacity      how many more instances fit; scenario: drains and adds hosts for that
supposition   a request in a scenario, the input of a what-if; suppositions: answers them in forked processes
"""
