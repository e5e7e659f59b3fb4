"""The keys of requests, each with its readers: extra specs, properties of images, and scheduler hints.

key            `Key`: a fixed part, and a pattern of the text after it
values         forms of values
flavor_keys    the extra specs that Nova and Roost know
image_keys     the properties of images that they know
known          `KnownKey`, and the scheduler hints that Nova and Roost know
misspelt       finds the known key that a misspelt one stands for
readers        the readers of keys in a configured scheduler
judgement      the keys of one request that have no effect, or are mistakes
servable       requests that no change of the hosts could serve
"""
