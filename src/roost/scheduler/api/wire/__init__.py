"""Request specs and selections as JSON, in the languages that clients use: Roost's and Nova's.

language        `Language`: the protocol of a language; Roost's, Nova's, and that of a request spec; checks
answers         the responses
nova_spec       reads Nova's RequestSpec
nova_selection  Nova's Selection objects, from and to Roost's selections
nova_object     names, versions and fields of Nova's objects
"""
