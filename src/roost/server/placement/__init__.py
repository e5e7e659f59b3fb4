"""The program `roost serve`: the Placement API.

server  the checks before any process starts, and the program that worker processes run
worker  a worker process: it opens a database and its ledger
edge    the edge of every service: access log, tokens, limits
"""
