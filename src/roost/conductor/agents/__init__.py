"""The endpoint of a cell for the agents of its hosts.

endpoint  answers the questions of agents
relay     reads and writes providers in placement for agents, which have no access of their own
"""
