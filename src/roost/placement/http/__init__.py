"""The Placement API over HTTP, microversions 1.0 to 1.39.

    app                what is put together: URLs, middleware, error forms
    operations         every operation: since which version, which body, what it answers
    microversions      versions on the wire, values by version, and since when each feature is there
    gate               before each operation: request id, token, version, media types; after it: headers
    auth, policy       who asks, and what they may do
    paths              which paths can name something at all
    cors               which pages of other origins may ask
    query              query strings: which parameters there are, and from text to the model's values
    candidate_query    the same for the request groups of candidates
    candidate_texts    the JSON of candidates, from rows to text; provider_texts keeps that of providers
    bodies, decoding   the forms of JSON bodies, and from JSON to them
    json_schema        what is wrong with a value, in the words of jsonschema
    uuids              UUIDs as clients write them
    errors             from a refusal to an answer
    answers            from values to answers: JSON, empty, cache headers
    request, resource  what the operations have in common
    worker, server     one server process, and starting all of them

and one file for each resource, named as its URL: providers, inventories, traits, aggregates, usages,
resource_classes, allocations, candidates, reshaper, root. An operation reads top to bottom: authorise,
parse, act, answer.

To add a microversion: raise `LATEST`; put what is new into the tables of `microversions`, `operations` and
`query`; read them where the behaviour is.
"""
