"""The conductors as programs: `roost conductor` and `roost cell-conductor NAME`.

options      what both read from the configuration
opening      what both open: placement, a scheduler in this process or over HTTP
parts        the parts of both, for their programs and `roost up`
conductor    what a worker process of the super conductor serves: the API of instances, aggregates and groups
cell         what one of a cell's conductor serves: the endpoint of the cell's agents
programs     the two kinds of program: their options, their checks and what they open
readiness    what must work for requests to be served
"""
