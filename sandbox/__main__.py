"""`python -m sandbox` lets you try the real bot in a browser.

Stand-ins replace Slack and the services.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from sandbox.launch import LOOPBACK, serve
from sandbox.services.running import serve_alone

MAX_PORT = 65_536


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sandbox, or only the services, and return the exit code."""
    options = _parser().parse_args(arguments)
    if options.part == "services":
        return _serve_services(options.services_port, options.latency_ms / 1000)
    return _serve_everything(options.host, options.port, dict(options.set))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gatehouse sandbox",
        description="Run the bot in a browser, between stand-ins of Slack and the three services.",
    )
    parser.add_argument(
        "--host",
        default=os.environ.get("SANDBOX_HOST", LOOPBACK),
        help="the address that the page listens on (%(default)s); in a container, 0.0.0.0",
    )
    parser.add_argument("--port", type=_port, default=8765, help="the page's port (%(default)s)")
    parser.add_argument(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another value for a setting of the bot, such as APPROVALS_NEEDED=2",
    )
    parts = parser.add_subparsers(dest="part")
    services = parts.add_parser("services", help="the stand-ins of the three services alone")
    services.add_argument("--port", dest="services_port", type=_port, default=9000)
    services.add_argument(
        "--latency-ms",
        type=float,
        default=50.0,
        help="how long each call takes (default: %(default)s)",
    )
    return parser


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) < MAX_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: choose 1 to {MAX_PORT - 1}")
    return int(text)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _serve_everything(host: str, port: int, settings: dict[str, str]) -> int:
    try:
        return asyncio.run(serve(host, port, settings))
    except OSError as error:
        print(
            f"The sandbox cannot listen on port {port} of {host}: {error.strerror}. "
            "Choose another with --port or --host, or with `make run PORT=8800`.",
            file=sys.stderr,
        )
        return 1


def _serve_services(port: int, latency_seconds: float) -> int:
    try:
        asyncio.run(serve_alone(port, latency_seconds))
    except OSError as error:
        print(f"The services cannot listen on port {port}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
