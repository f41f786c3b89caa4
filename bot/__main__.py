"""The command-line interface: `gatehouse [serve | check | …]`, or `python -m bot …`.

Each command imports what it needs, because `--version`, `--help` and the small commands would
otherwise take seconds to import the server. Wrong settings are told before that, too.
"""

import argparse
import asyncio
import gc
import io
import logging
import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bot import __version__

if TYPE_CHECKING:
    from bot.settings import Settings
    from bot.settings.files import Sources

BROKEN = 1
UNUSABLE = 2


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return the exit status (0: success, 1: problems, 2: unable to run)."""
    # SQLite files contain identities, so other users of this machine must not have access.
    os.umask(0o077)
    for stream in (sys.stdout, sys.stderr):
        # Some locales have no quotation marks or umlauts.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["sandbox"]:
        from sandbox.__main__ import main as run_sandbox

        return run_sandbox(given[1:])
    options = _parser().parse_args(given or ["serve"])
    from bot.settings import SettingsError

    try:
        status = int(options.run(options) or 0)
    except SettingsError as error:
        print("Gatehouse cannot start. Please correct these settings:", file=sys.stderr)
        for problem in error.problems:
            print(f"  {problem}", file=sys.stderr)
        status = UNUSABLE
    except BrokenPipeError:
        status = BROKEN
    # For the bot, failing to write the log isn't an error.
    return status if _is_all_written() or options.run is _serve else BROKEN


def _is_all_written() -> bool:
    """Flush stdout and stderr, and return True if both succeed.

    If a stream fails, redirect it so that Python doesn't fail again at exit.
    """
    is_all_written = True
    # A stream that was closed before the start is None.
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            is_all_written = False
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return is_all_written


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gatehouse", description="Gatehouse, a Slack bot.")
    parser.add_argument("--version", action="version", version=f"gatehouse {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command")
    commands.add_parser("serve", help="start the bot (the default)").set_defaults(run=_serve)
    commands.add_parser("sandbox", help="try Gatehouse in a browser, without any accounts")
    check = commands.add_parser("check", help="test every credential, and report each problem")
    check.add_argument("--json", action="store_true", help="print the report as JSON")
    check.set_defaults(run=_check)
    setup = commands.add_parser("setup", help="create and check a settings file")
    setup.add_argument(
        "--answers",
        type=Path,
        metavar="FILE",
        help="read the answers from a settings file with names instead of asking",
    )
    setup.add_argument("--out", type=Path, default=Path("gatehouse.toml"), metavar="FILE")
    setup.set_defaults(run=_set_up)
    manifest = commands.add_parser("manifest", help="print the Slack app manifest")
    manifest.add_argument(
        "--url", metavar="https://bot.example.com", help="the public address that Slack calls"
    )
    manifest.add_argument(
        "--socket", action="store_true", help="use Socket Mode, which needs no address"
    )
    manifest.add_argument(
        "--link", action="store_true", help="print a link that creates the Slack app"
    )
    manifest.set_defaults(run=_manifest)
    token = commands.add_parser("gateway-token", help="print a new token for a gateway client")
    token.set_defaults(run=_print_token)
    backup = commands.add_parser("backup", help="copy a SQLite database to a new file")
    backup.add_argument("file", type=Path, metavar="FILE")
    backup.set_defaults(run=_back_up)
    policy = commands.add_parser("policy", help="explain approvals").add_subparsers(required=True)
    explain = policy.add_parser("explain", help="show who decides on a flow's requests, and why")
    explain.add_argument("flow", help="an alias from FLOW_ALIASES, or a SID")
    explain.add_argument("user", nargs="?", metavar="person", help="a user ID, or a name as @ada")
    explain.set_defaults(run=_explain_policy)
    audit = commands.add_parser("audit", help="verify or export the audit log").add_subparsers(
        required=True
    )
    verify = audit.add_parser("verify", help="check every entry of the audit log")
    verify.add_argument(
        "--head",
        type=_hash,
        metavar="HASH",
        help="a hash that you saved earlier, to detect removed entries",
    )
    verify.set_defaults(run=_verify_audit)
    export = audit.add_parser("export", help="print the entries in JSON Lines format")
    export.add_argument(
        "--since", type=int, default=0, metavar="N", help="print only the entries after number N"
    )
    export.set_defaults(run=_export_audit)
    return parser


def _hash(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", text.lower()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a hash of 64 hexadecimal digits")
    return text.lower()


def _settings() -> "tuple[Settings, Sources]":
    from bot.settings import settings_from
    from bot.settings.files import find_sources

    sources = find_sources(os.environ)
    settings = settings_from(sources)
    # Libraries look for proxies and certificates in the environment.
    os.environ.update(settings.proxies)
    return settings, sources


def _serve(_options: argparse.Namespace) -> int:
    # Process 1 of a container would ignore a signal that comes before the event loop handles it.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    settings, sources = _settings()
    import structlog

    from bot.configured import redactor_of
    from bot.ops.logs import configure_logs
    from bot.ops.loop import run
    from bot.serve import CannotStartError, serve

    redactor = redactor_of(settings)
    configure_logs(settings.log_level, settings.log_format, redactor)
    log = structlog.get_logger("bot")
    log.info("settings", file=sources.file and str(sources.file))
    # Looking through all imported objects for garbage would stop the loop for tens of milliseconds.
    gc.freeze()
    try:
        run(serve(settings, redactor))
    except CannotStartError as error:
        log.error("start.failed", reason=str(error))  # noqa: TRY400 - a traceback adds nothing
        return UNUSABLE
    except Exception:
        # The log hides secrets, but Python's own traceback doesn't.
        logging.getLogger("bot").exception("crashed")
        return BROKEN
    return 0


def _check(options: argparse.Namespace) -> int:
    from bot.check import as_json, as_table, examine, settings_file
    from bot.checks.rules import Finding, all_well
    from bot.configured import redactor_of
    from bot.ops.logs import configure_logs
    from bot.ops.loop import run
    from bot.settings import SettingsError

    report = as_json if options.json else as_table
    try:
        settings, sources = _settings()
    except SettingsError as error:
        problems = [Finding("settings", "setting_wrong", problem) for problem in error.problems]
        print(report(problems))
        return UNUSABLE
    redactor = redactor_of(settings)
    # The report already shows failures, so don't log them.
    configure_logs("CRITICAL", settings.log_format, redactor)
    findings = [settings_file(settings, sources), *run(examine(settings))]
    print(redactor.clean(report(findings)))
    return 0 if all_well(findings) else BROKEN


def _set_up(options: argparse.Namespace) -> int:
    from bot.setup.run import set_up

    return set_up(options.answers, options.out, os.environ)


def _print_token(_options: argparse.Namespace) -> None:
    from bot.gateway.clients import new_token

    print(new_token())


def _back_up(options: argparse.Namespace) -> int:
    from bot.backup import back_up

    return back_up(_settings()[0].database_url.get_secret_value(), options.file)


def _verify_audit(options: argparse.Namespace) -> int:
    from bot.audit.reading import verify_audit

    return asyncio.run(verify_audit(_settings()[0], options.head))


def _export_audit(options: argparse.Namespace) -> int:
    from bot.audit.reading import export_audit

    return asyncio.run(export_audit(_settings()[0], options.since))


def _manifest(options: argparse.Namespace) -> int:
    from bot.slack.manifest import manifest_link, manifest_text

    try:
        show = manifest_link if options.link else manifest_text
        text = show(options.url, socket=options.socket)
    except ValueError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    print(text.rstrip("\n"))
    return 0


def _explain_policy(options: argparse.Namespace) -> int:
    settings, _ = _settings()
    from bot.configured import redactor_of
    from bot.explain import explain_policy
    from bot.ops.logs import configure_logs

    # The explanation already shows failed lookups, so don't log them.
    configure_logs("CRITICAL", settings.log_format, redactor_of(settings))
    return asyncio.run(explain_policy(settings, options.flow, options.user))


if __name__ == "__main__":
    sys.exit(main())
