"""The site of documents: the pages of ``docs``, and pages that are made from the code, built by Sphinx.

    README.md, docs/**/*.md ── repository_pages ──┐
                               contents           ├──▶ build/docs/pages ── Sphinx, conf ──▶ build/docs/html
    src/roost ──────────────── code_pages ────────┘

repository_pages  pages of the repository: their places in the site, and links between them
contents          tables of contents, from the links of a page
code_pages        all pages that are made from the code
command_pages     the commands, with their options
option_pages      the options of configuration files
policy_pages      policy rules, with the operations of each
api_services      the services: their operations, rules and OpenAPI documents
api_pages         the operations of each service
api_schemas       the types of bodies, as tables
plugin_pages      filters and weighers
python_pages      the classes that a program may use
docstrings        docstrings as Markdown
markdown          pieces of Markdown: tables, code, definitions
conf              the configuration of Sphinx
sphinx_hooks      changes of its behaviour

``python -m document_site`` builds the site; `make docs` does so.
"""
