"""How Sphinx builds the documentation: `make docs`, and Read the Docs by .readthedocs.yaml."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The code beside these pages is documented, whatever is installed.
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "_ext")]
PACKAGE = json.loads((ROOT / "package.json").read_text())

project = "jupyter_dist"
author = PACKAGE["author"]["name"]
project_copyright = f"2026, {author}"
version = release = PACKAGE["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "generated",
]
exclude_patterns = ["_build", "_ext"]
templates_path: list[str] = []

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4

# Every name of ours must resolve. Those of the standard library would need the network.
nitpicky = True
# Other packages, and what the client's own parts use among themselves.
nitpick_ignore_regex = [("py:.*", r"(?!jupyter_dist\b).*"), ("py:.*", r"jupyter_dist\.client\.servers\..*")]

napoleon_use_ivar = True  # attributes of the answers, which have types in the class, too
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# Constructors are called by ours alone.
autodoc_class_signature = "separated"
autodoc_default_options = {"members": True, "undoc-members": False, "exclude-members": "__init__"}

html_theme = "pydata_sphinx_theme"
html_title = f"jupyter_dist {release}"
html_baseurl = PACKAGE["homepage"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
# Without sections beside them, these pages have no navigation at the left.
html_sidebars = {"get-started": [], "tutorial": []}
html_theme_options = {
    "logo": {"text": "jupyter_dist"},
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "icon_links": [
        {"name": "Source", "url": PACKAGE["repository"]["url"].removesuffix(".git"), "icon": "fa-brands fa-github"}
    ],
}
