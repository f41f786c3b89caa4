"""`gatehouse setup`: writes the settings file and checks it."""

import asyncio
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bot.check import examine
from bot.checks.findings import as_table
from bot.configured import redactor_of
from bot.ops.logs import configure_logs
from bot.ops.redaction import Redactor, on_one_line
from bot.settings import read_settings
from bot.settings.env_file import ENV_FILE
from bot.setup.answers import Answers, SetupError, read_answers
from bot.setup.building import Known, settings_of
from bot.setup.questions import ask
from bot.slack.manifest import manifest_text

WELL, FOUND, NOT_WRITTEN = 0, 1, 2
HEADER = "# Written by `gatehouse setup`. docs/settings.md has every setting.\n"
# Copied from the environment without asking, to let the bot start with the file alone.
KEPT = ("SLACK_API_URL", "DATABASE_URL")
ASKED = frozenset(
    {
        *("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_APP_TOKEN", "ROLES"),
        *("ALERTS_CHANNEL", "APPROVALS_CHANNEL", "INVENTORY_BASE_URL", "INVENTORY_DATA_CENTERS"),
        *("INVENTORY_AUTH", "INVENTORY_AUTH_HEADER", "INVENTORY_SCOPE", "INVENTORY_PLANS"),
        *("FLOW_BASE_URL", "FLOW_ACCOUNT_SID", "FLOW_AUTH_TOKEN", "FLOW_FORM_FIELD"),
        *("FLOW_ALIASES", "EMAIL_BASE_URL", "EMAIL_API_KEY", "EMAIL_AUTH"),
    }
)


def set_up(answers_file: Path | None, out: Path, environment: Mapping[str, str]) -> int:
    """Write the settings file and check it; return the exit status."""
    configure_logs("CRITICAL", "console", Redactor())
    rest = {name: value for name, value in environment.items() if name not in {*ASKED, ENV_FILE}}
    try:
        _check_place(out)
        if answers_file is not None:
            answers, known = read_answers(answers_file), Known()
            manifest = _manifest_of(answers)
        else:
            (answers, known), manifest = ask(rest, out), ""
        settings = settings_of(answers, rest, known)
        kept = {name: rest[name] for name in KEPT if rest.get(name)}
        write_settings(out, settings_text({**settings, **kept}))
    except SetupError as error:
        print(f"{out} was not written. Please correct:", file=sys.stderr)
        for problem in error.problems:
            print(f"  {on_one_line(problem)}", file=sys.stderr)
        return NOT_WRITTEN
    except (KeyboardInterrupt, EOFError):
        print(f"\nStopped: {out} was not written.", file=sys.stderr)
        return NOT_WRITTEN
    print(manifest)
    for name in sorted(ASKED):
        if environment.get(name, settings.get(name)) != settings.get(name):
            print(f"{name} is also set in the environment and overrides the file: unset it.")
    print(f"Wrote {out}. Checking the settings:\n")
    return _check({**rest, **settings}, out)


def _check(environment: Mapping[str, str], out: Path) -> int:
    settings = read_settings(environment)
    findings = asyncio.run(examine(settings, environment))
    print(redactor_of(settings).clean(as_table(findings)))
    start = f"{ENV_FILE}={shlex.quote(str(out))} {_program()}"
    if not all(finding.is_well for finding in findings):
        print(f"\nCorrect {out} and try again: {start} check")
        return FOUND
    print(f"\nStart the bot: {start}")
    return WELL


def _program() -> str:
    """Return the command that starts this program from this folder."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m bot"
    is_on_path = shutil.which(program.name) == str(program)
    return shlex.quote(program.name if is_on_path else str(program))


def _manifest_of(answers: Answers) -> str:
    try:
        return manifest_text(answers.url, socket=answers.slack_app_token is not None)
    except ValueError as error:
        raise SetupError(f"url: {error}") from None


def settings_text(settings: Mapping[str, str]) -> str:
    """Return the content of the settings file."""
    unseen = [name for name, value in settings.items() if not value.isprintable()]
    if unseen:
        names = " and ".join(unseen)
        raise SetupError(
            f"A line break or invisible character was found in {names}. Correct the answer."
        )
    lines = (f"{name}={_quoted(value)}\n" for name, value in settings.items())
    return HEADER + "".join(lines)


def _quoted(value: str) -> str:
    if "'" not in value:
        return f"'{value}'"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _check_place(path: Path) -> None:
    """Check that the file can be created before a single-use code is exchanged."""
    if path.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise SetupError(
            f"{path} can't be written. Use --out with a file in a folder that you can write to."
        )


def write_settings(path: Path, text: str) -> None:
    """Write the file with mode 0600, and back up an existing file as `<name>.bak`."""
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
