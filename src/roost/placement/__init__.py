"""The Placement service.

commands/   writes: each validates itself against the fleet and applies changes
errors      the errors, each with its status and code in the HTTP API
interface   the operations that conductors, agents and the scheduler need
service     the interface on a ledger of this process
client/     the interface over HTTP
options     configuration under upstream's names; unsupported: options without effect
http/       the Placement API, one file for each resource, and its microversion table
"""
