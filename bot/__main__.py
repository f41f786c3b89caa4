"""The program's own commands: `gatehouse [serve | check | …]`, or `python -m bot …`."""

import argparse
import asyncio
import gc
import logging
import os
import sys
from typing import TYPE_CHECKING

from bot import __version__

if TYPE_CHECKING:
    from bot.settings import Settings

BROKEN, UNUSABLE = 1, 2
# Little garbage is in circles, and to look for it among ten thousand organizations takes 40 ms in
# which nobody is answered: among what is new now and then, among all seldom.
GARBAGE_THRESHOLDS = (2_000, 3, 3_000)


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return the exit status: 0 well, 1 something is wrong, 2 cannot run."""
    if sys.platform == "win32":
        print("Gatehouse does not run on Windows. Use WSL.", file=sys.stderr)
        return UNUSABLE
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["sandbox"]:
        return _sandbox(given[1:])
    # What nearly every start is; to make the parser of the other commands takes a hundredth of it.
    if given in ([], ["serve"]):
        return _serve(argparse.Namespace())
    options = _parser().parse_args(given)
    return int(options.run(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gatehouse", description="Gatehouse, a Slack bot.")
    parser.add_argument("--version", action="version", version=f"gatehouse {__version__}")
    parser.set_defaults(run=_serve)
    commands = parser.add_subparsers(title="commands", metavar="")
    commands.add_parser("serve", help="serve (the default)").set_defaults(run=_serve)
    commands.add_parser("sandbox", help="try it in a browser, without any account")
    check = commands.add_parser("check", help="try every credential, and name each mistake")
    check.add_argument("--json", action="store_true", help="for machines")
    check.set_defaults(run=_check)
    manifest = commands.add_parser("manifest", help="print the Slack app manifest")
    manifest.add_argument("--url", metavar="https://bot.example.com", help="where Slack calls")
    manifest.add_argument("--socket", action="store_true", help="for Socket Mode: no address")
    manifest.set_defaults(run=_manifest)
    token = commands.add_parser("gateway-token", help="print a new token for a gateway client")
    token.set_defaults(run=_gateway_token)
    policy = commands.add_parser("policy", help="who decides").add_subparsers(required=True)
    explain = policy.add_parser("explain", help="say who decides on a flow's requests, and why")
    explain.add_argument("flow", help="an alias of FLOW_ALIASES, or a SID")
    explain.add_argument("user", metavar="user-id", help="a Slack user ID, such as U0ADA")
    explain.set_defaults(run=_explain_policy)
    audit = commands.add_parser("audit", help="the audit").add_subparsers(required=True)
    verify = audit.add_parser("verify", help="check the whole chain")
    verify.add_argument("--head", metavar="HASH", help="a head noted earlier: finds a cut tail")
    verify.set_defaults(run=_verify_audit)
    export = audit.add_parser("export", help="print every entry as a line of JSON")
    export.add_argument("--since", type=int, default=0, metavar="N", help="only after entry N")
    export.set_defaults(run=_export_audit)
    rotate = audit.add_parser("rotate-key", help="go on with another AUDIT_KEY")
    rotate.set_defaults(run=_rotate_audit_key)
    return parser


def _sandbox(arguments: list[str]) -> int:
    """Hand over to `python -m sandbox`, which has options of its own."""
    from sandbox.__main__ import main as run_sandbox

    return run_sandbox(arguments)


def _settings() -> "Settings | None":
    """Read the environment; say everything that is wrong with it at once."""
    # Imported late: whoever serves has stopped the search for garbage by then.
    from bot.settings import SettingsError, read_settings
    from bot.settings.env_file import with_env_file

    try:
        return read_settings(with_env_file(os.environ))
    except SettingsError as error:
        print("Gatehouse cannot start. Please correct these settings:", file=sys.stderr)
        for problem in error.problems:
            print(f"  {problem}", file=sys.stderr)
        return None


def _serve(_options: argparse.Namespace) -> int:
    # What importing makes stays for good. To search it for garbage again and again while it grows
    # takes a third of the start, and later stops every acknowledgement while a search lasts.
    gc.disable()
    settings = _settings()
    if settings is None:
        return UNUSABLE
    # Imported late: a wrong setting is told in a fraction of the time that Bolt takes to load.
    import structlog

    from bot.clients.configured import redactor_of
    from bot.ops.logs import configure_logs
    from bot.ops.loop import run
    from bot.serve import CannotStartError, serve

    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    gc.enable()

    redactor = redactor_of(settings)
    configure_logs(settings.log_level, settings.log_format, redactor)
    try:
        run(serve(settings, redactor))
    except CannotStartError as error:
        structlog.get_logger("bot").error("start.failed", reason=str(error))
        return UNUSABLE
    except Exception:
        # Python itself would print it with whatever it holds.
        logging.getLogger("bot").exception("crashed")
        return BROKEN
    return 0


def _check(options: argparse.Namespace) -> int:
    from bot.ops.doctor.findings import as_json, as_table, unusable
    from bot.settings import SettingsError, read_settings
    from bot.settings.env_file import with_env_file

    try:
        settings = read_settings(with_env_file(os.environ))
    except SettingsError as error:
        problems = unusable(error.problems)
        print(as_json(problems) if options.json else as_table(problems))
        return UNUSABLE
    from bot.clients.configured import redactor_of
    from bot.ops.doctor.run import examine
    from bot.ops.logs import configure_logs
    from bot.ops.loop import run

    redactor = redactor_of(settings)
    # The report has its own lines for what fails.
    configure_logs("CRITICAL", settings.log_format, redactor)
    findings = run(examine(settings, environment=with_env_file(os.environ)))
    print(redactor.clean(as_json(findings) if options.json else as_table(findings)))
    return 0 if all(one.is_well for one in findings) else 1


def _manifest(options: argparse.Namespace) -> int:
    from bot.ops.manifest import manifest_text

    try:
        text = manifest_text(options.url, socket=options.socket)
    except ValueError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    print(text, end="")
    return 0


def _gateway_token(_options: argparse.Namespace) -> int:
    from bot.gateway.token import new_token, token_lines

    print(token_lines(new_token()))
    return 0


def _explain_policy(options: argparse.Namespace) -> int:
    settings = _settings()
    if settings is None:
        return UNUSABLE
    from bot.clients.configured import redactor_of
    from bot.ops.logs import configure_logs
    from bot.ops.policy_cli import explain_policy

    # What cannot be looked up has its own line.
    configure_logs("CRITICAL", settings.log_format, redactor_of(settings))
    return asyncio.run(explain_policy(settings, options.flow, options.user))


def _verify_audit(options: argparse.Namespace) -> int:
    settings = _settings()
    if settings is None:
        return UNUSABLE
    from bot.ops.audit_cli import verify_audit

    return asyncio.run(verify_audit(settings, options.head))


def _export_audit(options: argparse.Namespace) -> int:
    settings = _settings()
    if settings is None:
        return UNUSABLE
    from bot.ops.audit_cli import export_audit

    return asyncio.run(export_audit(settings, options.since))


def _rotate_audit_key(_options: argparse.Namespace) -> int:
    settings = _settings()
    if settings is None:
        return UNUSABLE
    from bot.ops.audit_cli import rotate_audit_key

    return asyncio.run(rotate_audit_key(settings, os.environ.get("AUDIT_KEY_NEW", "").strip()))


if __name__ == "__main__":
    sys.exit(main())
