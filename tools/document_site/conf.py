"""The configuration of Sphinx."""

from typing import Any

import roost

project = "Roost"
author = "the authors of Roost"
version = release = roost.__version__
html_title = f"Roost {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
highlight_language = "text"
# Dashes of options stay two dashes.
smartquotes = False

myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline", "deflist"]

html_theme = "furo"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options: dict[str, Any] = {"navigation_with_keys": True}
