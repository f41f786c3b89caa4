"""The program's own commands: `python -m bot [serve | check | manifest | audit verify]`."""

import argparse
import asyncio
import gc
import logging
import os
import sys

from bot.settings import Settings, SettingsError, read_settings

BROKEN, UNUSABLE = 1, 2


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return the exit status: 0 well, 1 something is wrong, 2 cannot run."""
    options = _parser().parse_args(arguments)
    return int(options.run(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bot", description="Gatehouse, a Slack bot.")
    parser.set_defaults(run=_serve)
    commands = parser.add_subparsers(title="commands", metavar="")
    commands.add_parser("serve", help="serve (the default)").set_defaults(run=_serve)
    check = commands.add_parser("check", help="try every credential, and name each mistake")
    check.add_argument("--json", action="store_true", help="for machines")
    check.set_defaults(run=_check)
    manifest = commands.add_parser("manifest", help="print the Slack app manifest")
    manifest.add_argument("--url", metavar="https://bot.example.com", help="where Slack calls")
    manifest.add_argument("--socket", action="store_true", help="for Socket Mode: no address")
    manifest.set_defaults(run=_manifest)
    audit = commands.add_parser("audit", help="the audit").add_subparsers(required=True)
    verify = audit.add_parser("verify", help="check the whole chain")
    verify.add_argument("--head", metavar="HASH", help="a head noted earlier: finds a cut tail")
    verify.set_defaults(run=_verify_audit)
    return parser


def _settings() -> Settings | None:
    """Read the environment; say everything that is wrong with it at once."""
    try:
        return read_settings(os.environ)
    except SettingsError as error:
        print("Gatehouse cannot start. Please set:", file=sys.stderr)
        for problem in error.problems:
            print(f"  {problem}", file=sys.stderr)
        return None


def _serve(_options: argparse.Namespace) -> int:
    settings = _settings()
    if settings is None:
        return UNUSABLE
    # What importing makes stays for good. To search it for garbage again and again while it grows
    # takes a third of the start, and later stops every acknowledgement while a search lasts.
    gc.disable()
    # Imported late: a wrong setting is told in a fraction of the time that Bolt takes to load.
    from bot.clients.configured import redactor_of
    from bot.logs import configure_logs
    from bot.serve import CannotStartError, serve

    gc.freeze()
    gc.enable()

    redactor = redactor_of(settings)
    configure_logs(settings.log_level, settings.log_format, redactor)
    try:
        asyncio.run(serve(settings, redactor))
    except CannotStartError as error:
        print(redactor.clean(str(error)), file=sys.stderr)
        return UNUSABLE
    except Exception:
        # Python itself would print it with whatever it holds.
        logging.getLogger("bot").exception("crashed")
        return BROKEN
    return 0


def _check(options: argparse.Namespace) -> int:
    from bot.doctor.findings import as_json, as_table, unusable

    try:
        settings = read_settings(os.environ)
    except SettingsError as error:
        problems = unusable(error.problems)
        print(as_json(problems) if options.json else as_table(problems))
        return UNUSABLE
    from bot.clients.configured import redactor_of
    from bot.doctor.run import examine
    from bot.logs import configure_logs

    redactor = redactor_of(settings)
    # The report has its own lines for what fails.
    configure_logs("CRITICAL", settings.log_format, redactor)
    findings = asyncio.run(examine(settings))
    print(redactor.clean(as_json(findings) if options.json else as_table(findings)))
    return 0 if all(one.is_well for one in findings) else 1


def _manifest(options: argparse.Namespace) -> int:
    from bot.manifest import manifest_text

    try:
        text = manifest_text(options.url, socket=options.socket)
    except ValueError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    print(text, end="")
    return 0


def _verify_audit(options: argparse.Namespace) -> int:
    settings = _settings()
    if settings is None:
        return UNUSABLE
    from bot.cli_audit import verify_audit

    return asyncio.run(verify_audit(settings, options.head))


if __name__ == "__main__":
    sys.exit(main())
