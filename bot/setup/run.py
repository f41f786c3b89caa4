"""`gatehouse setup`: writes the settings file and checks it."""

import asyncio
import os
import secrets
import shlex
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from bot.check import examine
from bot.checks.findings import as_table
from bot.configured import redactor_of
from bot.ops.logs import configure_logs
from bot.ops.redaction import Redactor, on_one_line
from bot.settings import SettingsError, settings_from
from bot.settings.files import toml_text
from bot.settings.sources import CONFIG, find_sources
from bot.setup.answers import SetupError, read_answers
from bot.setup.building import Table, settings_of
from bot.setup.names import look_up
from bot.setup.questions import ask
from bot.slack.manifest import manifest_text

WELL, FOUND, NOT_WRITTEN = 0, 1, 2
# Settings copied from the environment, so that the bot can start with only the file.
KEPT = ("SLACK_API_URL", "DATABASE_URL", "HOST", "METRICS_TOKEN")


def set_up(answers_file: Path | None, out: Path, environment: Mapping[str, str]) -> int:
    """Write and check the settings file, and return the exit status."""
    configure_logs("CRITICAL", "console", Redactor())
    # A proxy on the same machine passes requests on, and only programs with a token read metrics.
    rest: Table = {"host": "127.0.0.1", "metrics_token": secrets.token_urlsafe(24)}
    rest |= {name.lower(): environment[name] for name in KEPT if environment.get(name)}
    try:
        _require_writable(out)
        settings = _from_file(answers_file, rest) if answers_file else ask(rest)
        write_settings(out, settings)
        # Check what the bot will read.
        checked = settings_from(find_sources({CONFIG: str(out)}))
    except (SetupError, SettingsError) as error:
        print(f"{out} was not written because of these problems:", file=sys.stderr)
        for problem in error.problems:
            print(f"  {on_one_line(problem)}", file=sys.stderr)
        return NOT_WRITTEN
    except (KeyboardInterrupt, EOFError):
        print(f"\nSetup was stopped, so {out} was not written.", file=sys.stderr)
        return NOT_WRITTEN
    print(f"Wrote {out}. Checking the settings:\n")
    findings = asyncio.run(examine(checked))
    print(redactor_of(checked).clean(as_table(findings)))
    start = f"{CONFIG}={shlex.quote(str(out))} {shlex.quote(sys.executable)} -m bot"
    if not all(finding.is_well for finding in findings):
        print(f"\nCorrect {out}, and then check it again: {start} check")
        return FOUND
    print(f"\nStart the bot: {start}")
    return WELL


def _require_writable(out: Path) -> None:
    """Raise SetupError if the bot couldn't write or wouldn't read the file.

    Check this before exchanging a code, because a code works only once.
    """
    folder = out.resolve().parent
    is_shared = folder.is_dir() and folder.stat().st_mode & stat.S_IWOTH
    if out.is_dir() or is_shared or not os.access(folder, os.W_OK):
        raise SetupError(
            f"{out} can't be written, or every user can write to its folder. Use --out with a file"
            " in another folder."
        )


def _from_file(answers_file: Path, rest: Table) -> Table:
    """Print the manifest, and return the settings."""
    answers = read_answers(answers_file)
    try:
        manifest = manifest_text(answers.url, socket=answers.slack_app_token is not None)
    except ValueError as error:
        raise SetupError(f"url: {error}") from None
    workspace = asyncio.run(look_up(answers.slack_bot_token, rest))
    settings = settings_of(answers, rest, workspace)
    print(manifest)
    return settings


def write_settings(path: Path, settings: Mapping[str, object]) -> None:
    """Write the file with mode 0600, and back up an existing file as `<name>.bak`."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        new.touch(mode=0o600, exist_ok=False)
        new.write_text(toml_text(settings), encoding="utf-8")
        if path.exists():
            path.chmod(0o600)
            path.replace(path.with_name(f"{path.name}.bak"))
        new.replace(path)
    except OSError as error:
        raise SetupError(f"{path} can't be written: {error.strerror}.") from None
