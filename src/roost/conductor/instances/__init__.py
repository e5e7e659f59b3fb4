"""Instances over HTTP: asked for, listed, shown, deleted, given up.

instance_cell  the cell of an instance, for words that its database takes
operations     the operations of ``/v1/instances``, their handlers and policy rules
power          instances stopped and started by their users
rebuild        instances made anew on their hosts
shelve         instances that give up their hosts for a time
types          their bodies and queries
network_types  networks and ports in the body of a request
views          instances as users see them
"""
