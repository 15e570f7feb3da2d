"""All figures, and their ceilings: a figure may become smaller, never larger."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

from . import circles, names, parts, prose, rooms

CEILINGS = Path(__file__).with_name("ceilings.json")


@dataclass
class Figure:
    """A number with the places that it counts."""

    sentence: str
    value: float
    places: list[str]


def counted(sentence, places):
    return Figure(sentence, len(places), places)


def per_thousand(sentence, words, places):
    return Figure(sentence, round(1000 * len(places) / max(words, 1), 2), places)


def figures():
    """Measure all."""
    return {
        "names": counted("class names in more than one place of jupyter_dist", names.shared_names()),
        "names_ts": counted("names of exported TypeScript types in more than one module", names.shared_type_names()),
        "folders": counted(f"Python folders over {rooms.MOST_FILES} files", rooms.full_python_folders()),
        "folders_ts": counted(f"TypeScript folders over {rooms.MOST_FILES} files", rooms.full_typescript_folders()),
        "circles": counted("circles of Python modules, types included", circles.module_circles()),
        "folder_circles": counted("Python folders beside each other that import each other", circles.folder_circles()),
        "idioms": per_thousand("idioms per 1000 words of Python comments and docstrings", *prose.python_idioms()),
        "idioms_ts": per_thousand("idioms per 1000 words of TypeScript comments", *prose.typescript_idioms()),
        "idioms_docs": per_thousand("idioms per 1000 words of documentation", *prose.page_idioms()),
        "pronouns": counted("docstrings that begin with a verb and a pronoun", prose.pronoun_docstrings()),
        "missing_files": counted(
            "files that comments in Python name and that do not exist", prose.missing_files_named()
        ),
        **{f"outside_{name}": outside(name) for name in parts.names()},
    }


def outside(name):
    """Return the figure of a part: the files outside of it that name it."""
    sentence = f"files that name the part '{name}', which has {parts.lines_of(name)} lines"
    return counted(sentence, parts.named_outside(name))


def ceilings():
    """Return the ceiling of each figure; a new part has the one that all parts are to reach."""
    return {**{f"outside_{name}": parts.MOST_OUTSIDE for name in parts.names()}, **json.loads(CEILINGS.read_text())}


def above(found):
    """Return the names of the figures that are above their ceilings."""
    most = ceilings()
    return [name for name, figure in found.items() if figure.value > most[name]]


def lower(found):
    """Write the ceilings of figures that have become smaller. One per 1000 words has a tenth of room: sentences go, too."""
    most = ceilings()
    for name, figure in found.items():
        value = figure.value if isinstance(figure.value, int) else math.ceil(figure.value * 10) / 10
        most[name] = min(value, most.get(name, value))
    CEILINGS.write_text(json.dumps(most, indent=2) + "\n")
