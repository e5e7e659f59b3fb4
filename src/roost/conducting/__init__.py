"""The conductors as programs: `roost conductor` and `roost cell-conductor NAME`.

options      what both read from the configuration
opening      what both open: placement, a scheduler in this process or over HTTP
conductor    a worker process of the super conductor, with the API of instances, aggregates and groups
cell         a worker process of a cell's conductor, with the endpoint of the cell's agents
programs     the two kinds of program: their options, checks and workers
waiting      for databases that are away at the start
readiness    what must work for requests to be served
"""
