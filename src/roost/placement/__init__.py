"""The Placement service.

commands/   what may be changed: each validates against the fleet and applies changes
errors      every refusal, with the status and code that the HTTP API gives it
interface   what conductors, agents and the scheduler ask of a placement service
service     the interface on a ledger of this process
client/     the interface over HTTP
options     configuration, by upstream's names
http/       the Placement API, one file for each resource, and its microversion table
"""
