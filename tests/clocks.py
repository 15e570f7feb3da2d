"""Wall clocks of their own: the real one is shared by all processes of a machine, and must not be set."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
static long long jump(void) {  /* seconds, as the test has written them */
    const char *path = getenv("CLOCK_JUMP");
    FILE *file = path ? fopen(path, "r") : NULL;
    long long seconds = 0;
    if (file) { if (fscanf(file, "%lld", &seconds) != 1) seconds = 0; fclose(file); }
    return seconds;
}
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, at);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += jump();
    return failed;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""


def jumping(folder: Path, seconds: int = 0) -> tuple[Path, dict[str, str]]:
    """Return a file and variables: the clock of a process that has them is as many seconds ahead as the file says."""
    library, offset = folder / "jump.so", folder / "offset"
    if (compiler := shutil.which("cc") or shutil.which("gcc")) is None:
        pytest.skip("needs a C compiler")
    (folder / "jump.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, folder / "jump.c", "-ldl"], check=True)
    offset.write_text(str(seconds))
    return offset, {"LD_PRELOAD": str(library), "CLOCK_JUMP": str(offset)}
