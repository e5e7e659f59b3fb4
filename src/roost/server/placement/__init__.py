"""`roost serve` as a program.

server  the checks before any process starts
worker  a worker process: it opens a database and its ledger
edge    the edge of every service: access lines, tokens, limits
"""
