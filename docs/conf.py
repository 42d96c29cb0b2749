"""The documentation site: `make docs` builds it in target/site.

The source folder is the root of the repository, so that the links between Markdown files are the
same on a code host and on the site.
"""

import re
import shutil
import sys
from pathlib import Path

from docutils.nodes import Element, TextElement
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import ambar

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "_extensions"))

project = "ambar"
author = "The ambar developers"
copyright = "The ambar developers"  # noqa: A001 - Sphinx's name
version = release = ambar.__version__

PLACES = {"docs", "benchmarks", "examples"}
root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "benchmarks/README.md",
    "benchmarks/*/README.md",
    "benchmarks/*/results/*.md",
    "examples/data/README.md",
    "*.md",
]
exclude_patterns = [
    *(f"{path.name}/**" for path in ROOT.iterdir() if path.name not in PLACES),
    "README.md",
    "docs/_*",
    "docs/examples/**/*.ipynb",
]
extensions = [
    "breathe",
    "fortran",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.mermaid",
]
nitpicky = True
# Docstrings have parameters, whose names have no dots and capitals, and names of other packages in
# backquotes, too.
nitpick_ignore_regex = [
    ("py:obj", r"[a-z_]+"),
    ("py:obj", r"(dataclasses|datetime|io|meshio|numpy|pandas|xarray)\..+"),
    ("c:identifier", r"\w+_t|(AMBAR_)?MPI_\w+"),
    ("cpp:identifier", r"amrex.*"),
]

# Markdown, as a code host shows it
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
myst_fence_as_directive = ["mermaid"]
mermaid_fullscreen = False
mermaid_height = "auto"
mermaid_light_theme = "neutral"
mermaid_init_config = {"startOnLoad": False, "sequence": {"actorMargin": 20, "width": 120}}

# The reference: docstrings, and headers of the C API by Doxygen
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {
    "members": True,
    "inherited-members": "Mapping,MutableMapping,Sequence,tuple",
}
numpydoc_show_class_members = False
templates_path = [str(ROOT / "docs" / "_templates")]
breathe_projects = {"ambar": str(ROOT / "target" / "doxygen" / "xml")}
breathe_default_project = "ambar"
breathe_show_include = False
breathe_domain_by_extension = {"h": "c", "H": "cpp"}

# Examples, with what they print and objects that have HTML
sphinx_gallery_conf = {
    "examples_dirs": "examples/gallery",
    "gallery_dirs": "docs/examples",
    # Without MPI, its example is shown, and does not run.
    "filename_pattern": "/plot_" if shutil.which("mpiexec") else "/plot_(?!mpi)",
    "subsection_order": [
        f"examples/gallery/{section}"
        for section in ("ramses", "amrex", "particles", "meshes", "collections", "parallel")
    ],
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_",),
    "image_srcset": ["2x"],
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
}

html_theme = "pydata_sphinx_theme"
html_title = "ambar"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_root"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "ambar"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"docs/index": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

INDICES = {
    "benchmarks/README",
    "docs/decisions/README",
    "docs/howto/README",
    "docs/project/README",
    "docs/reference/index",
    "docs/start/README",
    "docs/understanding",
}
"""Pages that list others: links that begin their rows and items are the contents of a section."""


def add_contents(_: Sphinx, name: str, text: list[str]) -> None:
    """Add to a page what only the site needs: tables of contents, and marks of single pages.

    Links to folders, which only a code host shows, become text.
    """
    folder = (ROOT / name).parent
    text[0] = re.sub(
        r"\[([^][]*)\]\(([\w./-]+)\)",
        lambda link: link[1] if (folder / link[2]).is_dir() else link[0],
        text[0],
    )
    if re.match(r"benchmarks/\w+/results/|examples/data/", name):
        text[0] = f"---\norphan: true\n---\n{text[0]}"
    if name not in INDICES:
        return
    for part in re.split(r"^## ", f"\n{text[0]}", flags=re.MULTILINE):
        title, _, body = part.partition("\n")
        pages = re.findall(r"^(?:- |\| )\[.*?\]\(([\w./-]+)\.md\)", body, flags=re.MULTILINE)
        options = f":hidden:\n:caption: {title}" if title else ":hidden:"
        if pages:
            text[0] += "\n".join(["\n```{toctree}", options, "", *pages, "```\n"])


def unlink_code(
    _: Sphinx, __: BuildEnvironment, node: Element, text: TextElement
) -> Element | None:
    """Return the text of a link in a code block of a header: breathe has no label for it."""
    is_header = node.get("refdoc") == "docs/reference/c" and node["reftype"] == "ref"
    return text if is_header else None


def setup(app: Sphinx) -> None:
    """Register the functions above."""
    app.connect("source-read", add_contents)
    app.connect("missing-reference", unlink_code)
