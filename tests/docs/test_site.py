"""The documentation is built without warnings and without torch, its links lead somewhere, and no error code lacks an entry."""

import ast
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# As on Read the Docs: nobody needs torch to read.
BUILD = "import sys; sys.modules['torch'] = None; from sphinx.cmd.build import main; sys.exit(main(sys.argv[1:]))"
CODE = r"[a-z]+(?:_[a-z]+)*"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages as readers see them."""
    out = tmp_path_factory.mktemp("site")
    options = ["-b", "html", "-W", "--keep-going", "-q", "-d", str(out / ".doctrees")]
    command = [sys.executable, "-c", BUILD, *options, str(DOCS), str(out)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return out


class Page(HTMLParser):
    """Ids, and what is linked to."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found["id"]} if "id" in found else set()
        self.links |= {found[name] for name in ("href", "src") if found.get(name)}


def test_every_link_of_the_site_leads_to_something(site):
    pages = {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    assert len(pages) > 40
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = pages[target].ids | {"", "top"} if target in pages else None
            if not target.exists() or (known is not None and unquote(parts.fragment) not in known):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert not dead


def test_the_site_has_the_version_of_the_package(site):
    version = json.loads((ROOT / "package.json").read_text())["version"]
    assert f"jupyter_dist {version}" in (site / "index.html").read_text()


def test_references_are_made_from_the_code(site):
    for page, words in {
        "settings": ["DistApp.lease_seconds", "Lines before output scrolls"],
        "cli": ["--per-rank", "jupyter dist doctor"],
        "magics": ["%timeline_save", "--num-processes"],
        "http": ["groups/{group}/executions", "ready_seconds"],
        "typescript": ["jupyter-dist:IDistService", "jupyter-dist:kill-rank"],
        "python": ["notebook_launcher", "raise_for_error"],
    }.items():
        text = re.sub(r"<[^>]+>", "", (site / "reference" / f"{page}.html").read_text())
        assert not [word for word in words if word not in text], page


def python_codes():
    """What JupyterDistError is raised with, and what HTTP answers with."""
    for path in (ROOT / "jupyter_dist").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            is_ours = name == "JupyterDistError" or (name == "super().__init__" and path.name == "result.py")
            for constant in ast.walk(node.args[0]) if is_ours and node.args else ():
                if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                    yield constant.value
    from jupyter_dist.server.http.base import STATUS_OF_CODE

    yield from STATUS_OF_CODE


def typescript_codes():
    for path in (ROOT / "labextension" / "src").rglob("*.ts*"):
        if ".spec." not in path.name:
            yield from re.findall(rf"\bcode: (?:\w+ \? )?'({CODE})'", path.read_text())
            yield from re.findall(rf"\bcode: \w+ \? '{CODE}' : '({CODE})'", path.read_text())


def test_every_error_code_has_an_entry_with_its_own_address(site):
    codes = {*python_codes(), *typescript_codes()}
    assert {"rank_dead", "server_unreachable", "bad_response", "cell_failed", "internal"} <= codes
    sections = re.findall(rf'<section id="({CODE})">', (site / "troubleshooting.html").read_text())
    entries = set(re.findall(rf"^### ({CODE})$", (DOCS / "troubleshooting.md").read_text(), re.M))
    assert entries == codes
    assert entries <= set(sections)


def test_the_page_links_errors_to_where_the_site_is():
    """The one address, in package.json, is what the extension and the site use."""
    home = json.loads((ROOT / "package.json").read_text())["homepage"]
    assert f"'{home}'" in (ROOT / "labextension" / "src" / "services" / "errors.ts").read_text()


def test_links_and_pictures_of_the_readme_are_files_of_the_repository():
    """Relative, so that they work wherever the repository is; pyproject.toml makes those of PyPI."""
    links = re.findall(r"\]\((\S+)\)", (ROOT / "README.md").read_text())
    assert sum(link.endswith(".png") for link in links) >= 2
    assert [link for link in links if not (ROOT / link.partition("#")[0]).is_file()] == []
