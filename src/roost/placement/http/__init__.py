"""The Placement API over HTTP, microversions 1.0 to 1.39, on the HTTP kernel.

    app                the ASGI application
    operations         the rows of all operations; versioned is the type of a row
    microversions      versions on the wire, values by version, and the first version of each feature
    conventions        version headers and the forms of errors
    request, service   a request with its version; what the handlers work with
    query              query strings: the parameters of each version, and from text to the model's values
    candidate_query    the same for the request groups of candidates; parameter_docs describes all parameters
    candidate_texts    the JSON of candidates, from rows to text; provider_texts keeps that of providers
    bodies, decoding   the types of JSON bodies, and from JSON to them
    json_schema        validation messages, in the words of jsonschema
    uuids              UUIDs as clients write them
    answers            from values to responses: JSON, empty, cache headers
    worker, server     one server process, and starting all of them

and one file for each resource, named as its URL: providers, inventories, traits, aggregates, usages,
resource_classes, allocations, candidates, reshaper, root. A handler reads top to bottom: parse, act, answer.

To add a microversion: raise `LATEST`; put what is new into the tables of `microversions`, `operations` and
`query`; read them where the behaviour is.
"""
