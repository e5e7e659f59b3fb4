"""The wire format of the Placement API, which its own operations and those of ``/v1`` share.

microversions    versions on the wire, values by version, and the version that each feature came with
request          a request with its microversion
query            query strings: the parameters, and from text to the model's values
candidate_query  the same for the request groups of candidates; parameter_docs describes all parameters
candidate_texts  the JSON of candidates, from rows to text; provider_texts caches that of providers
json_schema      validation messages, in the words of jsonschema
uuids            UUIDs as clients write them
"""
