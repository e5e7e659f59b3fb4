"""The Placement service.

commands/      writes: each validates itself against the fleet and applies changes
queries/       computes queries beside writes, each with a limited share of time
http/          the Placement API, one file for each resource
v1/            the operations that upstream's API does not have
wire/          the wire format that both APIs share, and its microversions
client/        the interface over HTTP
exchange/      import from a database of OpenStack Placement, and export to one
interface      the operations that conductors, agents and the scheduler need
service        the interface on a ledger of this process
errors         the errors, each with its status and code in the HTTP API
access         the authenticator and the policy rules
options        configuration under upstream's names
unsupported    reports options that are set without effect
readiness      the health checks: database, ledger and Keystone
allocations    queries for allocations, answered from the tables
candidates_on  allocation candidates on a given fleet, such as one of the past
known_names    checks that named providers, classes and traits exist
moments        headers that carry the ledger version on which a response was made
"""
