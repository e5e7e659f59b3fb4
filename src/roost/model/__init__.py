"""The model: immutable value types that all other packages exchange. No I/O; imports no other package.

Placement
    inventory          the inventory of one resource class at one provider
    vocabulary         standard resource classes and traits, and the syntax of custom names
    request            request groups and the allocation candidate query
    allocation         allocations, consumers, claims of server group members, allocation candidates
    change             the changes that a commit of the ledger contains
    reshape            rules of a reshape, and an instance's selection after it

Compute nodes
    node               the report of a compute node
    node_event         changes of the node table, as the node journal stores them
    aggregate          host aggregates
    operator_word      operators' words: cells, hosts and nodes enabled or disabled
    maintenance        maintenances of many hosts, and the states of their hosts
    assignment         CPUs, pages and PCI devices of a node that one consumer holds

Requests and instances
    spec               input and output of the scheduler: flavor, image, request spec, selection, destination
    device_profiles    names of device profiles and of their request groups
    idempotency        idempotency keys and stored answers
    instance           instances, build requests, build results, faults
    departure          an instance that is to leave its host
    fence              fences of agents, and the silence after which they count
    move               moves of instances
    move_states        the states of moves, and the table of how each is left
    crossings          moves to other cells: how the two halves go on together

Records and explanations
    record             scheduler runs and claim attempts
    reasons            stages, near misses and relaxations of a refused run; weights of the best hosts
    what_if            how many more instances of a request fit
    folded_names       host names as ranges: ``compute-[007-009]``
    visibility         the parts of a decision that each role may see

Texts and names
    names              rules for new names
    text               cleaning of text from outside
    secrets            hiding of secrets in texts
    token              tokens of hosts, and digests of tokens
    wrong_value        sentences about a value of the wrong type or size
    errors             the base class of errors that an operator can correct
    service_version    the version of a process, and the features that depend on it
"""
