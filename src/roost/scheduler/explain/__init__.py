"""Why a request is refused: one explanation, on a snapshot of the state of placement.

A refusal is decided again on a snapshot that belongs to nobody else, so instances are really placed. A survey
counts the hosts that each condition removes; hosts that fail one condition alone are near misses; and each
change of the request that may help is decided as well, so that only changes that work are told. A
snapshot tells what it knows: one of answers over HTTP knows nothing of hosts that placement left out, and of
no other query.

explanation      the whole: decides, surveys, tries changes, and writes the sentence
snapshot         a state to judge and decide on; conditions, and what the queries make of its trees
fleet_snapshot   the snapshot of a copy of the fleet
answer_snapshot  the snapshot of the answers of a placement service
survey           the conditions that each host meets, and the hosts that each removes in turn: the funnel
causes           the condition without which the request is placed, or two such
misses           hosts that one condition alone excludes
relaxations      single changes with which the request may be placed, each tried
pairs            two changes at once
hardware         changes of hardware: fewer PCI devices, smaller NUMA cells
phrases          the words of conditions
move_search      the instances that could move so that the request fits
lacking_hosts    what hosts lack for a request, and what instances that leave free
moving_snapshot  a snapshot on which instances move
resident_reader  reads the instances that may move from the cells' databases
explainer        the refusals of one process that wait for their explanation
following_copy   a copy that follows a ledger by messages, and answers about refusals
ledger_copy      the forked process with that copy
explanations     the explanations in progress of one scheduler
scenario         a request on supposed hosts, which are drained and added
what_if          how many more instances of it fit, counted in forked processes
"""
