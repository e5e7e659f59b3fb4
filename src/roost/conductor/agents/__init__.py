"""The endpoint of a cell for the agents of its hosts.

endpoint  machines that answer the questions of agents
works     what they do in the cell's database
relay     reads and writes providers in placement for agents, which have no access of their own
service   runs the endpoint in a process
http      the endpoint over HTTP, one row for each question
tokens    knows hosts by their tokens
"""
