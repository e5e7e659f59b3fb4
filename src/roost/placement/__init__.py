"""The Placement service.

commands/   what may be changed: each validates against the fleet and applies changes
errors      every refusal, with the status and code that the HTTP API gives it
service     the commands and queries behind one small interface, for use in this process
http/       the Placement API, one file for each resource, and its microversion table
"""
