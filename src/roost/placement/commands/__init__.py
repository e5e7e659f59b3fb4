"""The commands of the Placement service.

    providers              create, rename, move and delete resource providers; check and raise generations
    inventories            set, add and delete inventories
    traits_and_aggregates  set the traits and the aggregates of a provider
    names                  add, rename and delete custom resource classes and traits
    allocations            write and delete the allocations of consumers
    group_condition        the condition of a claim that names a server group
    assignment_condition   the write of one consumer; the assignments after it, and the check of conflicts
    reshape                change inventories and allocations of several providers in one commit
    word                   announce an operator's word to all schedulers on the ledger

A command is a frozen value that holds the whole request of a client. `run` validates it against the state and
applies changes. If it raises a `PlacementError`, the ledger undoes the changes that it has applied.
"""
