"""Print the figures, or with a name the places behind one of them."""

import sys

from . import parts
from .figures import CEILINGS, above, ceilings, figures, lower
from .rooms import MANY_LINES, long_files


def main(words):
    found = figures()
    if words == ["--lower"]:
        lower(found)
    elif words:
        chosen = [line for word in words for line in found[word].places]
        print(*chosen, sep="\n")
        return 0
    most = ceilings()
    for name, figure in found.items():
        print(f"{figure.value:>8} (ceiling {most[name]})  {name}: {figure.sentence}")
    for name in parts.names():
        seconds = parts.cpu_seconds_of(name)
        took = "not run here" if seconds is None else f"{seconds:.0f} s of CPU in their last run here"
        outside = found[f"outside_{name}"].value
        print(f"part {name}: {parts.lines_of(name)} lines, named by {outside} files outside; its tests: {took}")
    for line in long_files():
        print(f"hint: {line}, over {MANY_LINES}: is it one idea?")
    worse = above(found)
    for name in worse:
        print(f"{name} is above its ceiling in {CEILINGS.name}; the places: python -m tests.house {name}")
    return len(worse)


sys.exit(main(sys.argv[1:]))
