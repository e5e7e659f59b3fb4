"""From a request spec to what placement is asked.

question            everything that one run decides upon
query               the candidate queries of a spec
demand/             request groups from flavor, image and the rest
request_filters/    what can be asked of placement already
keys/               the keys of requests, each with its readers
places              the hosts and nodes that a request names
rebuild             a request that stays on its host
options             options under Nova's names
accelerator_options, key_options  options of device profiles and of keys that nothing reads
extra_specs, hints, image_properties, hypervisor_versions  how values of requests are read
"""
