"""The conductors as programs: `roost conductor` and `roost cell-conductor NAME`.

options      the options of both
assembly     opens the services that both call: placement, and a scheduler in this process or over HTTP
parts        opens the parts of both, for their programs and `roost up`
conductor    a worker process of the super conductor: the API of instances, aggregates and groups
cell         a worker process of a cell's conductor: the endpoint of the cell's agents
programs     the two kinds of program: reading and checking options, preparing databases
readiness    the checks that must pass for requests to be served
"""
