"""Whether a device was initialized before ranks are forked, as CUDA's driver tells it: 3 before cuInit (seen on an H200)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from waits import PATIENCE

# What the library answers after `begin`, as the driver does after cuInit.
DRIVER = """
static int state = 3;
int cuDeviceGetCount(int *count) { *count = 1; return state; }
void begin(void) { state = 0; }
"""
CODE = """
import ctypes, sys
sys.path.insert(0, {folder!r})
from jupyter_dist.rank.start import driver, preload, zygote
preload._NEEDED = preload._EARLY = ()
preload._optional = list
for name in ("json", "loads_it", "starts_it", "wave"):
    __import__(name)
    driver.note(name)
    print(name, driver.is_initialized(), zygote._why_unsafe())
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_an_import_that_has_started_the_driver_is_named(tmp_path: Path) -> None:
    (tmp_path / "driver.c").write_text(DRIVER)
    library = tmp_path / "libcuda.so.1"
    options = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(library), str(tmp_path / "driver.c")]
    subprocess.run(["cc", *options], check=True, timeout=PATIENCE)
    (tmp_path / "loads_it.py").write_text(f"import ctypes\nlibrary = ctypes.CDLL({str(library)!r})\n")
    (tmp_path / "starts_it.py").write_text("import loads_it\nloads_it.library.begin()\n")
    code = CODE.format(folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE, capture_output=True, text=True)
    reason = "importing starts_it initialized a device"
    assert done.stdout.splitlines() == [
        "json False None", "loads_it False None", f"starts_it True {reason}", f"wave True {reason}"
    ]  # fmt: skip
