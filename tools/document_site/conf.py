"""The configuration of Sphinx."""

import roost
from document_site.sphinx_hooks import setup as setup

project = "Roost"
author = "the authors of Roost"
version = release = roost.__version__
html_title = f"Roost {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
highlight_language = "text"
# Dashes of options stay two dashes.
smartquotes = False

# Docstrings have names of code between single backticks. Not all of them are in the site.
default_role = "py:obj"
nitpick_ignore_regex = [("py:.*", ".*")]
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True

myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline", "deflist"]

html_theme = "furo"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
