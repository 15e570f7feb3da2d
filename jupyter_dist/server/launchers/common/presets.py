"""Presets: named options of starts, which an administrator or a user has written into a file or the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jupyter_dist.protocol.errors import bad_request
from jupyter_dist.protocol.models.sentences import say, words_of
from jupyter_dist.protocol.schemas import object_schema
from jupyter_dist.protocol.secrets import Secrets
from jupyter_dist.protocol.wire.requests import StartOptions

if TYPE_CHECKING:
    from typing_extensions import Self

    from jupyter_dist.protocol.models import machine

FILE_NAME = "jupyter_dist_presets.yaml"
MAX_FILE_BYTES = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}", re.ASCII)
_TEXTS = ("label", "description")
# A start that has one of these has no other of the preset.
_SHAPE = ("num_ranks", "ranks_per_node", "devices")


class Start(Protocol):
    """The group that a request asks for."""

    def fields(self) -> dict[str, Any]:
        """Return the fields of the request by name."""

    def with_fields(self, changes: Mapping[str, Any]) -> Self:
        """Return the group with other values of these fields."""


S = TypeVar("S", bound=Start)


class Presets:
    """The presets of this server. The file is read again for each request: changes need no restart."""

    def __init__(self, configured: Mapping[str, Any], file: str = "") -> None:
        """`configured` has presets by name; `file` is the path of more, by default FILE_NAME where Jupyter's is."""
        self._configured = dict(configured)
        self._file = file

    def listed(self) -> list[machine.Preset]:
        """Return all presets in the order of their files; a preset with a mistake has a `problem`."""
        found: dict[str, machine.Preset] = {}
        for where, content in self._sources():
            if isinstance(content, str):
                found.setdefault(where, _preset(where, {}, content))
                continue
            for name, fields in content.items():
                found.setdefault(str(name), _preset(str(name), fields, _problem(name, fields)))
        return list(found.values())

    def applied(self, wanted: S) -> S:
        """Return the start with the options of its preset, where it leaves the defaults.

        Args:
            wanted: the WantedGroup of a request.

        Raises:
            JupyterDistError: `bad_request`, if there is no such preset, or it cannot be used.
        """
        name = wanted.fields()["preset"]
        if name is None:
            return wanted
        presets = {preset["name"]: preset for preset in self.listed()}
        preset = presets.get(name)
        if preset is None:
            known = ", ".join(presets)
            hint = say("Presets: %1.", known) if known else say("This server has none; they are in %1.", FILE_NAME)
            raise bad_request(say("There is no preset '%1'.", name[:60]), hint)
        if preset["problem"]:
            raise bad_request(
                say("The preset '%1' cannot be used: %2", name, preset["problem"]), say("Correct it, or use another.")
            )
        return wanted.with_fields({"preset": None, **_changes(wanted, preset["options"])})

    def _sources(self) -> list[tuple[str, dict[Any, Any] | str]]:
        """Return the presets of each source, or why it cannot be read."""
        files = [Path(self._file).expanduser()] if self._file else _usual_files()
        read = ((path.name, _read(path)) for path in files)
        return [("DistApp.presets", self._configured), *read]


def _usual_files() -> list[Path]:
    from jupyter_core.paths import jupyter_config_path  # noqa: PLC0415 - private servers need it for this alone

    return [path for folder in jupyter_config_path() if (path := Path(folder, FILE_NAME)).is_file()]


def _read(path: Path) -> dict[Any, Any] | str:
    """Return the content of a file of presets, or why it cannot be used."""
    import yaml  # type: ignore[import-untyped]  # noqa: PLC0415 - few servers have such a file

    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return say("%1 is larger than %2 MiB.", path, MAX_FILE_BYTES >> 20)
        content = yaml.safe_load(path.read_text())
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as err:
        return say("%1 cannot be read: %2.", path, " ".join(str(err).split())[:300])
    if content is None:
        return {}
    return (
        content
        if isinstance(content, dict)
        else say("%1 must have the name of a preset on each line, then its options.", path)
    )


def _preset(name: str, fields: Any, problem: str | None) -> machine.Preset:
    fields = fields if isinstance(fields, dict) else {}
    label, description = (str(fields.get(text) or "")[:300] for text in _TEXTS)
    options = {} if problem else {key: value for key, value in fields.items() if key not in _TEXTS}
    return {
        "name": name[:60],
        "label": label or name[:60],
        "description": description,
        "options": options,
        "problem": problem,
        "problem_words": words_of(problem),
    }


def _problem(name: Any, fields: Any) -> str | None:
    """Return the first mistake in a preset, as a sentence."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return say("its name must have letters, digits, '_', '.' and '-' alone.")
    if not isinstance(fields, dict):
        return say("it must be an object of options.")
    if wrong := next((text for text in _TEXTS if not isinstance(fields.get(text, ""), str)), None):
        return say("'%1' must be a text.", wrong)
    return _mistake({key: value for key, value in fields.items() if key not in _TEXTS})


def _mistake(options: dict[Any, Any]) -> str | None:
    import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415 - few servers have presets

    schema = object_schema(StartOptions, closed=True)
    schema["properties"].pop("preset", None)
    error = next(iter(jsonschema.Draft202012Validator(schema).iter_errors(options)), None)
    if error is None:
        return None
    where = ".".join(map(str, error.absolute_path))
    return f"{f'{where!r}: ' if where else ''}{error.message[:300]}."


def _changes(wanted: Start, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a preset changes in a start."""
    given, defaults = wanted.fields(), type(wanted)().fields()

    def is_left(name: str) -> bool:
        return bool(given.get(name) == defaults.get(name))

    found: dict[str, Any] = {}
    has_shape = not all(map(is_left, _SHAPE))
    for name, value in options.items():
        if name == "env":
            found[name] = Secrets.parsed(value).under(given["env"])
        elif isinstance(value, dict):
            found[name] = {**value, **given[name]}
        elif is_left(name) and not (has_shape and name in _SHAPE):
            found[name] = value
    if given["environment"] is None and {"environment", "python"} & set(options):  # clients send their own Python
        found["python"] = options.get("python")
    return found
