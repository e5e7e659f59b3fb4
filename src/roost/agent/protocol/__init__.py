"""The protocol between the agents of hosts and their cell.

    questions  what an agent asks: open a session, poll, confirm a build, read and write providers
    types      what the messages are made of
    endpoint   the interface of a cell's endpoint; one transport is in this process, one is HTTPS
    wire       paths and codes of the protocol over HTTPS
    client     the endpoint over HTTPS, as an agent asks it
    tokens     what an agent proves its host with
    exposure   whether what an agent says can be read on the way
    digest     the digest of a host's guests, which changes with each guest that comes or goes
    errors     what can go wrong

An agent opens a session of its host and polls. A poll is the heartbeat: it brings results, changed reports of
nodes and the digest of guests to the cell, waits there for orders, and takes them back. Every message can be
lost, doubled and late: orders are sent until their result has arrived, and orders and results are keyed by
(instance, attempt).
"""
