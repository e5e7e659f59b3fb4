"""The keys of requests, each with its readers: extra specs, properties of images, and scheduler hints.

key            `Key`: a fixed part, and a pattern of the text after it; the key that a misspelt one stands for
flavor_keys    the extra specs that Nova and Roost know
image_keys     the properties of images that they know
known          `KnownKey`, forms of values, and the scheduler hints that Nova and Roost know
readers        the readers of keys in a configured scheduler
judgement      the keys of one request that have no effect, or are mistakes
"""
