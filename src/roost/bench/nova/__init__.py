"""Benchmarks beside Nova's own scheduler, on the databases and the placement that both use.

decisions     `roost bench nova`: calls of select_destinations, from the request spec to the selections
feed          `roost bench nova-feed`: the processor time of following a cloud whose computes report

nova_cloud    Nova's databases and the placement, filled with the same hosts
computes      hosts: their plan, their rows, and a process that reports as their computes do
schedulers    the schedulers as processes that are asked
nova_process  Nova's scheduler, in a process of Nova's interpreter
bridge        Roost's scheduler of Nova, in a process of its own
timed_calls   what both processes have in common
"""
