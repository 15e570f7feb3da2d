"""Every code block of get-started, the tutorial and the how-to guides works when it is pasted."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from blocks import PAGES, SKIPPED, blocks_of, missing_line
from libraries import EXAMPLES as LIBRARIES  # noqa: F401 (of the groups that pages start)
from magickernel import kernel_of
from traitlets.config import Config
from waits import PATIENCE, PATIENCE_WITH_A_START, until

from jupyter_dist.server.extension import DistApp

# The tutorial's long cell prints for a minute, to walk away from.
HURRY = {"time.sleep(1)": "time.sleep(0.01)"}
START = "jupyter dist start train -n 2"  # as the tutorial begins; the group is for all pages
JUDGED = set()  # cells
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reader")


@pytest.fixture(scope="module")
def kernel(folder):
    """One for all pages, without groups that end with it."""
    with kernel_of(folder / "lesson.ipynb") as kernel:
        yield kernel
        kernel.run("%unload_ext jupyter_dist")


class Reader:
    """A reader who pastes blocks, in order."""

    def __init__(self, client, folder, kernel):
        self.client, self.folder, self.kernel = client, folder, kernel
        self.waiting = None  # the cell that hangs

    def paste(self, kind, code):
        """What it prints."""
        for slow, quick in HURRY.items():
            code = code.replace(slow, quick)
        if kind.startswith("python on ranks"):
            return self._on_ranks(code, kind.removeprefix("python on ranks").strip())
        return {
            "python in a kernel": self._in_kernel,
            "python in a script": self._in_script,
            "python config": self._config,
            "sh": self._shell,
        }[kind](code)

    def _on_ranks(self, code, how):
        group = self.client.attach("train")
        if how == "hangs":
            self.waiting = group.submit(code)
            return ""
        if self.waiting is not None:
            assert self.waiting.result(PATIENCE).state == "interrupted"
            self.waiting = None
        result = group.run(code)
        assert result.ok is (how != "fails"), result.text
        return ANSI.sub("", result.text)

    def _in_kernel(self, code):
        cell = self.kernel.run(code)
        assert cell.status == "ok", cell.error
        shown = "".join(text for _, text in cell.said) if cell.displays else ""
        return cell.text + shown

    def _in_script(self, code):
        (self.folder / "script.py").write_text(code)
        return self._done([sys.executable, "script.py"], code)

    def _shell(self, code):
        # `jupyter` need not be on the path for `jupyter dist`.
        main = "from jupyter_dist.cli.main import main; main()"
        dist = f"jupyter() {{ shift; {sys.executable} -c '{main}' \"$@\"; }}\n"
        return self._done(["bash", "-e", "-c", dist + code], code)

    def _done(self, command, code):
        server = {"URL": self.client.url.rstrip("/"), "TOKEN": self.client._client.server.token}
        # Only where they are read: groups with different environments share no import of torch.
        server = {name: value for name, value in server.items() if name in code}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=self.folder, timeout=PATIENCE_WITH_A_START, env=os.environ | server
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    def _config(self, code):
        from jupyter_dist.parts.clusters.slurm.launcher import SlurmLauncher

        config = Config()
        exec(code, {"c": config})
        classes = {"DistApp": DistApp, "SlurmLauncher": SlurmLauncher}
        for name, settings in config.items():
            assert set(settings) <= set(classes[name].class_trait_names(config=True))
            configured = classes[name](config=config)
            assert {setting: getattr(configured, setting) for setting in settings} == settings
            if name == "SlurmLauncher":
                configured.check_limits(configured.check({}, 1), [1])
        return ""


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_the_page_works(page, client, folder, kernel):
    reader = Reader(client, folder, kernel)
    blocks = [block for block in blocks_of(page) if block.kind not in SKIPPED]
    if blocks and not client.groups() and START not in blocks[0].code:
        reader.paste("sh", START)
    for block in blocks:
        where = f"{page.name}:{block.line}"
        seen = [""]

        def shown(block=block, seen=seen):
            seen[0] = reader.paste(block.kind, block.code)
            return missing_line(block.output or "", seen[0]) is None

        if reader.waiting is not None and block.kind == "sh":  # what a rank waits in is known after some seconds
            until(shown, lambda: seen[0])
        else:
            assert shown(), f"{where}: {missing_line(block.output or '', seen[0])!r} is not in\n{seen[0]}"
    assert {check.kind for check in checks_of(client)} == (
        {"same_batch"} if page.stem == "find-what-is-wrong" else set()
    )


def checks_of(client):
    """The checks of all cells since the last call: pages share groups."""
    cells = {cell.id: cell for group in client.groups() for cell in client.attach(group.name).executions()}
    new = [cell for key, cell in cells.items() if key not in JUDGED]
    JUDGED.update(cells)
    return [check for cell in new for check in cell.checks or ()]


def test_a_block_that_does_not_say_where_it_runs_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n")
    with pytest.raises(AssertionError, match="does not say where it runs"):
        blocks_of(page)


def test_expected_output_is_compared_line_by_line():
    assert missing_line("a 1\n...b...\n", "x\na 1\nabc\n") is None
    assert missing_line("b\na\n", "a\nb\n") == "a"
