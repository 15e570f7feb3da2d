"""Make the moving picture of the README from the frames that ui-tests/screenshots/moving.spec.js has taken.

    python .ci/moving.py FRAMES OUT.gif

A frame's name is its time in milliseconds. Frames that are alike are one; what stands still for long is cut short.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image, ImageChops

MOST_BYTES = 2_000_000
LAST_MS = 2500
LONGEST_MS = 3500  # of one picture: a wait for the machine says nothing
COLORS = 96


def frames_of(folder: Path) -> list[tuple[Image.Image, int]]:
    """Return the pictures that differ, and for how many milliseconds each is shown."""
    found: list[tuple[Image.Image, int]] = []
    for path in sorted(folder.glob("*.png")):
        at, picture = int(path.stem), Image.open(path).convert("RGB")
        if not found or ImageChops.difference(found[-1][0], picture).getbbox():
            found.append((picture, at))
    ends = [at for _, at in found[1:]] + [found[-1][1] + LAST_MS]
    return [(picture, min(end - at, LONGEST_MS)) for (picture, at), end in zip(found, ends, strict=True)]


def main(folder: Path, out: Path) -> None:
    """Write the file. Exits with an error if it is too large for a page."""
    frames = frames_of(folder)
    # One palette for all: pictures that share most of their pixels are stored as what changes.
    palette = max((picture for picture, _ in frames), key=lambda each: len(each.getcolors(1 << 24) or ())).quantize(
        COLORS
    )
    pictures = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture, _ in frames]
    first, *others = pictures
    durations = [duration for _, duration in frames]
    first.save(out, save_all=True, append_images=others, duration=durations, loop=0, optimize=True, disposal=1)
    size, seconds = out.stat().st_size, sum(durations) / 1000
    print(f"{out}: {len(frames)} pictures, {seconds:.1f} s, {size / 1e6:.2f} MB")
    if size > MOST_BYTES:
        sys.exit(f"{out} has more than {MOST_BYTES} bytes.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
