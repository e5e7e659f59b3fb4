"""Maintenance waves: many hosts are emptied in few groups, each into all the others.

A plan is a value, made of a value: without I/O, clock or chance. Only ``plans`` has to do with processes.

    FleetToMaintain ──► components ──► plan of each ──► MaintenancePlan: waves of hosts, with the target
                                                        of each guest; hosts that cannot be emptied, and why

    plan         the types: hosts, guests and server groups in, waves and moves out
    components   hosts between which no guest can move are planned apart
    bound        the least number of waves, by capacity alone
    packed_hosts where each guest is and what is free on each host; moves that can be taken back
    wave         one wave: the hosts that are emptied together, and the targets of their guests
    planner      the waves of a fleet
    obstacles    why a host cannot be emptied, in words
    live_fleet   the fleet of a plan, from the ledger's fleet, the node table and the instances
    plans        plans of a running scheduler, in forked processes

Why not one host after the other: a cloud of a thousand hosts would take a thousand times the time of one
upgrade. Why not simply the largest groups whose use fits in the free room: their guests end anywhere, on
hosts that are yet to be emptied too, and move again and again. Here the guests of the first wave fill the
holes of the others, and move a second time with the host that has taken them. From then on whole empty hosts
are there, and the guests of each further wave go to those of the wave before, mostly host by host, so that
nothing is lost by packing. A guest that has moved goes only to hosts that are done with, so that none moves
more than twice.

Glossary
    *wave*: hosts that are out of service together
    *final*: hosts that guests may go to and stay on: their wave is over, or they are not selected
    *reserve*: room outside the wave for the guests of any one further host
"""
