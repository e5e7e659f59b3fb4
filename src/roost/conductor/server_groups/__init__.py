"""Server groups over HTTP. The groups themselves are in `roost.state.api_database.server_groups`.

operations  the operations of ``/v1/server-groups``, their handlers and policy rules
types       bodies and queries
"""
