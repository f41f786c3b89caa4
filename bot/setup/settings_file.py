"""The settings file: lines of `NAME='value'`, readable only by its owner, replaced atomically."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bot.setup.answers import SetupError

HEADER = "# Written by `gatehouse setup`. docs/settings.md has every setting.\n"


def settings_text(settings: Mapping[str, str]) -> str:
    """Return the content of the settings file.

    Raises:
        SetupError: A value contains a line break or another invisible character.
    """
    unseen = [name for name, value in settings.items() if not value.isprintable()]
    if unseen:
        names = " and ".join(unseen)
        raise SetupError(f"{names} would contain a line break or an invisible character.")
    lines = (f"{name}={_quoted(value)}\n" for name, value in settings.items())
    return HEADER + "".join(lines)


def _quoted(value: str) -> str:
    if "'" not in value:
        return f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def check_place(path: Path) -> None:
    """Check that the file can be created before a single-use code is exchanged.

    Raises:
        SetupError: The file can't be created.
    """
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise SetupError(
            f"{path} can't be written. Use --out with a file in a folder that you can write to."
        )


def write_settings(path: Path, text: str) -> None:
    """Write the file with mode 0600; back up an existing file as `<name>.bak`.

    Raises:
        SetupError: The file can't be written; an existing file is unchanged.
    """
    try:
        if path.exists():
            _replace(path.with_name(f"{path.name}.bak"), path.read_bytes())
        _replace(path, text.encode())
    except OSError as error:
        raise SetupError(f"{path} can't be written: {error.strerror}.") from None


def _replace(path: Path, content: bytes) -> None:
    # mkstemp creates files that only their owner can access.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
