"""`gatehouse setup`: writes the settings file and checks it."""

import os
import secrets
import shlex
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from bot.check import as_table, examine
from bot.checks.rules import all_well
from bot.configured import redactor_of
from bot.ops.logs import configure_logs
from bot.ops.loop import run
from bot.ops.redaction import Redactor, on_one_line
from bot.settings import SettingsError
from bot.settings.files import CONFIG, read_table, toml_text
from bot.settings.model import PROXIES
from bot.setup.answers import (
    Table,
    check_settings,
    exchange_codes,
    leave_out,
    link_of,
    with_presets,
    workspace_of,
)
from bot.setup.questions import ask

WELL, FOUND, NOT_WRITTEN = 0, 1, 2
# Settings copied from the environment, so that the bot can start with only the file.
KEPT = ("SLACK_API_URL", "DATABASE_URL", "HOST", "METRICS_TOKEN")


def set_up(answers: Path | None, out: Path, environment: Mapping[str, str]) -> int:
    """Write and check the settings file, and return the exit status."""
    configure_logs("CRITICAL", "console", Redactor())
    # A proxy on the same machine passes requests on, and only programs with a token read metrics.
    rest: Table = {"host": "127.0.0.1", "metrics_token": secrets.token_urlsafe(24)}
    rest |= {name.lower(): environment[name] for name in KEPT if environment.get(name)}
    try:
        _require_writable(out)
        table, refused = _from_file(answers, rest) if answers else ask(rest)
        settings = check_settings(table)
        findings = run(examine(settings))
        refused += leave_out(table, findings)
        check_settings(table)
        write_settings(out.resolve(), table)
    except SettingsError as error:
        print(f"{out} was not written because of these problems:", file=sys.stderr)
        for problem in error.problems:
            print(f"  {on_one_line(problem)}", file=sys.stderr)
        return NOT_WRITTEN
    except (KeyboardInterrupt, EOFError, UnicodeDecodeError):
        print(f"\nSetup was stopped, so {out} was not written.", file=sys.stderr)
        return NOT_WRITTEN
    clean = redactor_of(settings).clean
    print(clean(as_table(findings)))
    for reason in refused:
        print(clean(on_one_line(f"Left out of {out}: {reason}")))
    program = shlex.quote(sys.argv[0])
    if Path(sys.argv[0]).name != "gatehouse":
        program = f"{shlex.quote(sys.executable)} -m bot"
    start = f"{CONFIG}={shlex.quote(str(out))} {program}"
    if refused or not all_well(findings):
        print(f"\nWrote {out}. Correct it, and then check it again: {start} check")
        return FOUND
    print(f"\nWrote {out}. Start the bot: {start}")
    return WELL


def _from_file(answers: Path, rest: Table) -> tuple[Table, list[str]]:
    """Return the settings in an answers file, and the reasons why some credentials are left out.

    Print the link that creates the app. `rest` has settings for which the file needs no answer.
    """
    table = {**rest, **read_table(answers, "--answers")}
    setup = table.pop("setup", {})
    if not isinstance(setup, dict):
        raise SettingsError(["setup must be a table."])
    # Libraries look for proxies and certificates in the environment.
    os.environ.update({name.upper(): str(table[name]) for name in PROXIES if name in table})
    table = with_presets(table, setup)
    link = link_of(setup.get("url"), is_socket="slack_app_token" in table)
    if "slack_bot_token" in table:
        table = workspace_of(table).with_ids(table)
    refused = exchange_codes(table)
    print(f"This link creates the Slack app:\n{link}\n")
    return table, refused


def _require_writable(out: Path) -> None:
    """Raise SettingsError if the bot couldn't write or wouldn't read the file.

    Check this before exchanging a code, because a code works only once.
    """
    target = Path(os.path.realpath(out))
    folder = target.parent
    is_shared = folder.is_dir() and folder.stat().st_mode & stat.S_IWOTH
    # A folder, a device or a pipe would be replaced. A link to itself leads to none of them.
    is_odd = os.path.lexists(target) and not target.is_file()
    if is_odd or is_shared or not os.access(folder, os.W_OK):
        problem = (
            f"{out} can't be written, or every user can write to its folder. Use --out with a file"
            " in another folder."
        )
        raise SettingsError([problem])


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
        raise SettingsError([f"{path} can't be written: {error.strerror}."]) from None
