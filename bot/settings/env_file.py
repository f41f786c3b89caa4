r"""Reads the settings file at the path in `GATEHOUSE_ENV_FILE`.

Each line is empty, a comment (`# …`), or `NAME=value`. `export ` before the name is ignored. A
value has one of these forms:

- `'literal'`, up to the next single quote
- `"quoted"`, where `\"` and `\\` mean `"` and `\` (other backslashes are rejected)
- unquoted, up to the end of the line or a `#` after a space

A value can't span multiple lines, `$` has no special meaning, and each name can be set only once.
"""

import os
import re
import stat
from collections.abc import MutableMapping
from pathlib import Path

from bot.settings import SettingsError

ENV_FILE = "GATEHOUSE_ENV_FILE"
LINE = re.compile(
    r"""(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*="""
    r"""(?:[ \t]*(?:'([^']*)'|"((?:[^"\\]|\\["\\])*)")(?:[ \t]+#.*)?"""
    r"""|(?![ \t]*['"])(.*?)(?:[ \t]#.*)?)"""
)
UNREADABLE = "can't be read; write NAME='value' on one line"


def load_env_file(environment: MutableMapping[str, str]) -> None:
    """Add the file's settings to the environment. Existing variables take precedence.

    Raises:
        SettingsError: The file or a line can't be read, or any user can write to the file.
    """
    path = environment.get(ENV_FILE, "").strip()
    if not path:
        return
    try:
        with Path(path).open(encoding="utf-8-sig", newline="\n") as file:
            mode = os.fstat(file.fileno()).st_mode
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        example = f"(example: {ENV_FILE}=/etc/gatehouse/env)"
        raise SettingsError([f"{ENV_FILE} {path} cannot be read: {reason} {example}"]) from None
    if stat.S_ISREG(mode) and mode & stat.S_IWOTH:
        raise SettingsError([f"{ENV_FILE} {path} is writable by every user: run chmod 600 {path}"])
    found: dict[str, str] = {}
    problems = []
    for number, text in enumerate(map(str.strip, lines), 1):
        if not text or text.startswith("#"):
            continue
        line = LINE.fullmatch(text)
        if line is None or "\0" in text:
            problems.append(f"{ENV_FILE} {path}, line {number}: {UNREADABLE}")
        elif line[1] in found:
            problems.append(f"{ENV_FILE} {path}, line {number}: sets {line[1]} a second time")
        else:
            name, literal, quoted, plain = line.groups(default="")
            found[name] = literal or re.sub(r"\\(.)", r"\1", quoted) or plain.strip()
    if problems:
        raise SettingsError(problems)
    for name, value in found.items():
        environment.setdefault(name, value)
