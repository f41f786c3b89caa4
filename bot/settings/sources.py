"""Finds the settings: in the environment, in a dotenv file, and in a TOML file.

Each setting comes as a whole from the first of these places that has it.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from dotenv.parser import parse_stream
from pydantic_settings import TomlConfigSettingsSource

from bot.settings.model import Settings

CONFIG, ENV_FILE = "GATEHOUSE_CONFIG", "GATEHOUSE_ENV_FILE"
DEFAULT_FILE = Path("gatehouse.toml")


class SettingsError(Exception):
    """Some settings are invalid. Each entry in `problems` names a setting and shows an example."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Sources:
    """Where settings come from: environment variables, and the content of a TOML file.

    `environment` includes the variables of the dotenv file. Empty variables are left out.
    """

    environment: Mapping[str, str]
    file: Path | None = None
    table: Mapping[str, object] = field(default_factory=dict)

    @property
    def files(self) -> list[str]:
        """The names of the files."""
        return [str(file) for file in (self.file, self.environment.get(ENV_FILE)) if file]


def find_sources(environment: Mapping[str, str]) -> Sources:
    """Read the files that the environment names.

    Raises:
        SettingsError: A file or a line can't be read, or other users can change a file.
    """
    problems: list[str] = []
    given = _filled(environment)
    if ENV_FILE in given:
        try:
            given = {**_filled(_read_env_file(Path(given[ENV_FILE]))), **given}
        except SettingsError as error:
            problems += error.problems
    file = _settings_file({**given, **environment})
    table: Mapping[str, object] = {}
    if file is not None:
        try:
            table = _read_toml(file)
        except SettingsError as error:
            problems += error.problems
    if problems:
        raise SettingsError(problems)
    return Sources(given, file, table)


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
        owner = DEFAULT_FILE.stat().st_uid
    except OSError:
        # There is no such file, or this user can't look into the folder.
        return None
    # Anybody could have put the file into a shared folder.
    return DEFAULT_FILE if owner in {os.geteuid(), 0} else None


def _text_of(setting: str, path: Path) -> str:
    """Return a file's text, or raise SettingsError if other users could have changed it."""
    try:
        text = path.read_text(encoding="utf-8")
        modes = {place: place.stat().st_mode for place in (path, path.resolve().parent)}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsError([f"{path} ({setting}) can't be read: {reason}"]) from None
    for place, mode in modes.items():
        # Devices such as /dev/null may be writable.
        if mode & stat.S_IWOTH and path.is_file():
            reason = f"because {place} is writable by every user"
            raise SettingsError([f"{path} ({setting}) is refused, {reason}"])
    return text


def _read_env_file(path: Path) -> dict[str, str]:
    text = StringIO(_text_of(ENV_FILE, path))
    found: dict[str, str] = {}
    problems = []
    for binding in parse_stream(text):
        if binding.error or (binding.key and binding.value is None):
            written = binding.original.string
            # The parser counts from the end of the previous line.
            skipped = written[: len(written) - len(written.lstrip())].count("\n")
            line = binding.original.line + skipped
            problems.append(
                f"In {path} ({ENV_FILE}), line {line} can't be read. Write NAME='value'"
            )
        elif binding.key:
            found[binding.key] = binding.value or ""
    if problems:
        raise SettingsError(problems)
    return found


def _read_toml(path: Path) -> dict[str, object]:
    text = _text_of(CONFIG, path)
    try:
        table = TomlConfigSettingsSource(Settings, path)()
    except tomllib.TOMLDecodeError as error:
        last = f"at line {len(text.splitlines())}, the last line"
        problem = str(error).replace("at end of document", last)
        raise SettingsError([f"{path} is not valid TOML: {problem}"]) from None
    except RecursionError:
        raise SettingsError([f"{path} is nested too deeply"]) from None
    return _filled(table)
