"""The wire format of the Placement API, which its own operations and those of ``/v1`` share.

microversions    versions, values by version, the first version of each feature, a request with its version
query            query strings: the parameters, and their conversion to the model's values
candidate_query  the conversion of the parameters of candidates to a query
parameter_docs   the descriptions of all query parameters
candidate_texts  the JSON of candidates, from rows to text
provider_texts   a cache of the JSON of providers
json_schema      validation messages in the words of jsonschema
uuids            UUIDs as clients write them
"""
