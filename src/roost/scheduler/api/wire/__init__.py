"""Request specs and selections as JSON, in the languages that clients speak.

spoken       what a language reads and shows; language: which one a request spec is in
answers      the responses
roost_spec   Roost's own: the types of `roost.model.spec` as they are
nova_language  Nova's: nova_spec reads its RequestSpec, nova_selection its Selection, nova_object what all
             objects have alike
strict       from JSON to these types, without a key that they lack
checks       values that no request spec may have
"""
