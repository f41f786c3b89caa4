"""Finds the settings, in the environment and in a TOML file, and writes settings in TOML.

Each setting comes as a whole from the environment, or else from the file. `gatehouse setup` writes
the file with a comment on each setting, and error messages show examples.
"""

import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import SecretStr

from bot.settings.model import Settings

CONFIG = "GATEHOUSE_CONFIG"
DEFAULT_FILE = Path("gatehouse.toml")
HEADER = (
    "# Gatehouse settings. docs/settings.md explains each of them. A line that begins with # is"
    " ignored.\n"
)


class SettingsError(Exception):
    """Some settings are invalid. Each entry in `problems` names a setting and shows an example."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Sources:
    """Where settings come from: environment variables, and the content of a TOML file.

    Empty variables are left out.
    """

    environment: Mapping[str, str]
    table: Mapping[str, object]
    file: Path | None = None

    @property
    def place(self) -> str:
        """Where the file's settings stand, for a sentence after their name."""
        return f" in {self.file}" if self.file else ""


def find_sources(environment: Mapping[str, str]) -> Sources:
    """Read the settings file, if there is one.

    Raises:
        SettingsError: The file can't be read, or other users can change it.
    """
    file = _settings_file(environment)
    table = {} if file is None else read_table(file, CONFIG)
    return Sources(_filled(environment), table, file)


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without spaces around them, leaving out empty values."""
    stripped = {
        name: value.strip() if isinstance(value, str) else value for name, value in values.items()
    }
    return {name: value for name, value in stripped.items() if value != ""}


def _settings_file(environment: Mapping[str, str]) -> Path | None:
    if CONFIG in environment:
        return Path(environment[CONFIG]) if environment[CONFIG].strip() else None
    try:
        # A link that leads nowhere is there too, and can't be read.
        owner = DEFAULT_FILE.stat(follow_symlinks=DEFAULT_FILE.exists()).st_uid
    except OSError:
        # There is no such file, or this user can't look into the folder.
        return None
    # Anybody could have put the file into a shared folder.
    return DEFAULT_FILE if owner in {os.geteuid(), 0} else None


def read_table(path: Path, option: str) -> dict[str, Any]:
    """Return the content of a TOML file. Errors name the option that names the file."""
    text = _text_of(option, path)
    try:
        return _filled(tomllib.loads(text))
    except ValueError as error:
        # Besides invalid TOML, a number with thousands of digits.
        last = f"at line {len(text.splitlines())}, the last line"
        problem = str(error).replace("at end of document", last)
        raise SettingsError([f"{path} is not valid TOML: {problem}"]) from None
    except RecursionError:
        raise SettingsError([f"{path} is nested too deeply"]) from None


def _text_of(option: str, path: Path) -> str:
    """Return a file's text, or raise SettingsError if other users could have changed it."""
    try:
        # Some editors put a byte order mark at the beginning.
        text = path.read_text(encoding="utf-8-sig")
        modes = {place: place.stat().st_mode for place in (path, *_folders(path))}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsError([f"{path} ({option}) can't be read: {reason}"]) from None
    for place, mode in modes.items():
        # Devices such as /dev/null may be writable.
        if mode & stat.S_IWOTH and path.is_file():
            reason = f"because {place} is writable by every user"
            raise SettingsError([f"{path} ({option}) is refused, {reason}"])
    return text


def _folders(path: Path) -> list[Path]:
    """Return the folders in which the file, and each link that leads to it, can be replaced."""
    folders = [path.parent]
    for place in (path, *path.parents):
        if place.is_symlink():
            folders += [place.parent, *_folders(place.parent / place.readlink())]
    return folders


def example_of(name: str) -> object:
    """Return a setting's example, as in TOML. Without one, the default is the example."""
    field = Settings.model_fields[name]
    value = field.examples[0] if field.examples else field.default
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def in_environment(name: str) -> str:
    """Return an example of a setting as an environment variable."""
    return f"{name.upper()}={EXAMPLES[name.upper()]}"


def in_toml(name: str) -> str:
    """Return an example of a setting in TOML, on one line."""
    return toml_table({name: example_of(name)})


def toml_table(table: Mapping[str, object], *place: str) -> str:
    """Return a table in TOML on one line, such as `[roles] viewer = ["*"]; admin = ["U0ADAM"]`."""
    (name, inner), *others = table.items()
    if isinstance(inner, dict) and not others:
        return toml_table(inner, *place, _key(name))
    heading = f"[{'.'.join(place)}] " if place else ""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
    return heading + "; ".join(lines)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(one)}' for key, one in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name)


def toml_text(values: Mapping[str, object]) -> str:
    """Return the content of a settings file. Tables come last, because TOML requires it."""
    names = sorted(values, key=lambda name: isinstance(values[name], dict))
    parts = [
        f"# {Settings.model_fields[name].description}\n{tomli_w.dumps({name: values[name]})}"
        for name in names
    ]
    return "\n".join([HEADER, *parts])


# By the names of the environment variables.
EXAMPLES: Mapping[str, str] = {
    name.upper(): value
    if isinstance(value := example_of(name), str)
    else json.dumps(value, ensure_ascii=False)
    for name in Settings.model_fields
}
