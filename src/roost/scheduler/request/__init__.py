"""Turns a request spec into the candidate queries that placement is asked.

scheduling_request   `HostRequest`, what a caller asks for, and `SchedulingRequest`, what one run decides on
request_reader       from a caller's request to a scheduling request, if it can be served
query                the candidate queries of a request spec, and whether placement knows their names
demand               request groups from flavor, image and the rest
request_filters      conditions that placement can check already
keys                 the keys of requests, each with its readers
changed              a request with constraints left out, or with another flavor
places               the hosts and nodes that a request names
rebuild              a request that stays on its host
accelerator_options  options of device profiles
extra_specs          operators of extra specs
image_properties     image properties under current names, with values as Nova spells them
"""
