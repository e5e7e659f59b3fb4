"""The protocol between the agents of hosts and their cell.

questions    messages of an agent, and the interface of the endpoint that answers them
types        values in the messages
wire         paths and error codes of the protocol over HTTPS
client       the endpoint over HTTPS, as an agent calls it
connections  kept HTTP connections of one host
exposure     check that messages to an endpoint are encrypted
errors       errors of the protocol

An agent opens a session of its host and polls. A poll is the heartbeat: it brings results, changed reports of
nodes and the digest of guests to the cell, waits there for orders, and takes them back. Every message can be
lost, doubled and late: orders are sent until their result has arrived, and orders and results are keyed by
(instance, attempt).
"""
