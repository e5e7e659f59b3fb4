"""The keys of requests, each with its readers: extra specs, properties of images, and scheduler hints.

key            `Key`: a fixed part, and what may follow it
values         the forms of values
flavor_keys    the extra specs that Nova and Roost know
image_keys     the properties of images that they know
known          all known keys: these, scheduler hints, and what the plugins declare
misspelt       the known key that was meant
readers        what reads keys as a scheduler is configured
judgement      the keys of one request that have no effect; what can never be served
"""
