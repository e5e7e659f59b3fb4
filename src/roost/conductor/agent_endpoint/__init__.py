"""The endpoint of a cell for the agents of its hosts.

endpoint  machines that answer the questions of agents
sessions  which agent speaks for a host
polls     what the cell's database takes of polls
new_work  what hosts have to do that they do not know yet
works     what else is done in the cell's database
relay     reads and writes providers in placement for agents, which have no access of their own
service   runs the endpoint in a process
http      the endpoint over HTTP, one row for each question
tokens    knows hosts by their tokens
"""
