"""The page's catalogues: each string is translated, with the placeholders and the plural forms of its string, and JupyterLab finds them."""

import ast
import json
import re
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from jupyterlab_server.translation_utils import get_installed_packages_locale

PACKAGE = Path(__file__).parents[2] / "jupyter_dist"
LOCALES = PACKAGE / "locale"
LANGUAGES = ["de_DE", "fr_FR", "ja_JP", "zh_CN"]


def catalogue(language):
    with (LOCALES / language / "LC_MESSAGES" / "jupyter_dist.po").open("rb") as file:
        return read_po(file, locale=language)


def template():
    with (LOCALES / "jupyter_dist.pot").open("rb") as file:
        return read_po(file)


def forms(texts):
    return [texts] if isinstance(texts, str) else list(texts)


def placeholders(text):
    return sorted(set(re.findall(r"%\d+", text)))


def test_there_are_no_other_languages():
    assert [path.name for path in sorted(LOCALES.iterdir()) if path.is_dir()] == LANGUAGES


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_string_has_a_translation(language):
    strings = {(message.context, *forms(message.id)) for message in template() if message.id}
    found = {(one.context, *forms(one.id)): forms(one.string) for one in catalogue(language) if one.id}
    assert set(found) == strings
    assert [string for string, texts in found.items() if not all(texts)] == []


def test_no_sentence_is_in_the_language_of_another_catalogue():
    found = {}
    for language in LANGUAGES:
        for message in catalogue(language):
            english, text = forms(message.id)[0], forms(message.string)[0]
            if len(re.findall(r"[^\W\d_]{2,}", re.sub(r"%\d", "", text))) > 4 and text != english:
                found.setdefault(text, set()).add(language)
    assert {text: languages for text, languages in found.items() if len(languages) > 1} == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_form_has_the_placeholders_of_its_string(language):
    wrong = []
    for message in catalogue(language):
        english, translated = forms(message.id), forms(message.string)
        for i, text in enumerate(translated if message.id else []):
            # "%1" may be left out where it can only be 1.
            allowed = [placeholders(english[-1])]
            if i == 0 and len(translated) > 1:
                allowed.append(placeholders(english[0]))
            if text and placeholders(text) not in allowed:
                wrong.append((english, text))
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_plural_has_all_forms_of_its_language(language):
    found = catalogue(language)
    plurals = [message for message in found if message.id and message.pluralizable]
    assert len(plurals) > 40
    assert [message.id for message in plurals if len(forms(message.string)) != found.num_plurals] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_ends_as_its_string(language):
    """A colon or an ellipsis is part of a label's meaning; a full stop makes it a sentence."""
    # As each of them is written in Chinese and Japanese.
    wide = str.maketrans("\uff1a\uff1f\u3002", ":?.")
    wrong = []
    for message in catalogue(language):
        english, translated = forms(message.id)[-1], forms(message.string)[-1]
        ends = [text[-1:].translate(wide) for text in (english, translated)]
        if message.id and translated and ends[0] != ends[1] and not set(ends).isdisjoint("\u2026:?.\n"):
            wrong.append((english, translated))
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_has_the_emphasis_of_markdown(language):
    """The page shows texts as they are: names of buttons and settings are in quotation marks."""
    texts = [text for message in catalogue(language) for text in forms(message.id) + forms(message.string)]
    assert [text for text in texts if re.search(r"(?<![\w*])\*\w[^*]*\w\*(?![\w*])", text)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_jupyterlab_finds_the_catalogue_of_the_installed_package(language):
    found, trouble = get_installed_packages_locale(language)
    assert not trouble
    assert found["jupyter_dist"] == json.loads((LOCALES / language / "LC_MESSAGES" / "jupyter_dist.json").read_text())
    assert len(found["jupyter_dist"]) > 600


# Their errors are shown in the page: of the start form, launchers, parking, saves, undo and comparisons.
SHOWN = [
    *("server/groups/resolve.py", "server/groups/manager.py", "server/groups/group.py", "server/mirror/status.py"),
    *(
        "server/launchers",
        "parts/clusters",
        "parts/parking/agent",
        "parts/resizing",
        "parts/undo/agent",
    ),
    *("parts/saves", "system/files/owned.py", "rank/state/writing.py"),
    *("agent/group/cells/asking.py", "agent/group/cells/dispatch.py"),
    *("parts/parking/rank", "parts/undo/rank", "rank/cells/values/numbers.py"),
    *("protocol/ranks.py", "protocol/wire/earlier.py", "agent/contact/owners.py", "agent/group"),
    *("agent/nodes/head.py", "agent/nodes/member.py", "agent/nodes/paths.py", "agent/processes/failedstart.py"),
    *("rank/control.py", "rank/state", "server/analysis", "parts/script/choosing.py"),
]
RAISING = {"JupyterDistError": 1, "bad_request": 0, "_bad_devices": 0}  # where their sentences begin


def _english(source: str) -> Iterator[int]:
    """Yield the lines of errors whose sentences are texts without words for other languages."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RAISING:
            for sentence in node.args[RAISING[node.func.id] :][:2]:
                is_text = isinstance(sentence, ast.JoinedStr) or (
                    isinstance(sentence, ast.Constant) and bool(sentence.value)
                )
                if is_text and "{err!r" not in ast.unparse(sentence):
                    yield sentence.lineno


def _of_its_part(place: str):
    return pytest.param(place, marks=pytest.mark.part(place.split("/")[1])) if place.startswith("parts/") else place


@pytest.mark.parametrize("place", [_of_its_part(place) for place in SHOWN])
def test_errors_of_the_page_have_words_for_other_languages(place):
    path = PACKAGE / place
    # What a part has in clients is not shown in the page.
    files = [path] if path.is_file() else [file for file in sorted(path.rglob("*.py")) if "client" not in file.parts]
    assert files
    assert [f"{file}:{line}" for file in files for line in _english(file.read_text())] == []


@pytest.mark.part("clusters")
def test_labels_and_help_of_all_options_of_launchers_have_words_that_the_catalogues_have():
    known = {text for message in template() if message.id for text in forms(message.id)}
    options = {}
    for entry in entry_points(group="jupyter_dist.launchers"):
        for option in entry.load().options:
            options[entry.name, option.name] = option.model(())
    assert len(options) > 50
    words = [one[key] for one in options.values() for key in ("label_words", "help_words")]
    assert [each["text"] for several in words for each in several if each["text"] not in known] == []
