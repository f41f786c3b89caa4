"""`make image-test` builds the container image and runs it.

Run this command as root on Debian. The command needs no image registry, because mmdebstrap creates
the base image. To use a different base image, set the environment variable BASE to the image's
name. The bot runs as an unprivileged user in a read-only root folder. The bot uses PostgreSQL and a
stand-in for Slack. The bot must become ready and answer a signed command. The bot must stop within
ten seconds of receiving SIGTERM. The sandbox in the image must work, too.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from sandbox.slack.server import RunningSlack, running_slack
from tests.support.postgres import own_database, server_url

ROOT = Path(__file__).parents[2]
IMAGE, BASE = "localhost/gatehouse-test", "localhost/gatehouse-test-base"
USER = "65532:65532"
MOST_MEGABYTES, STOP_SECONDS, READY_SECONDS = 200, 10, 60
PORT = 18_765
ENVIRONMENT = {**os.environ, "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"}
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def run(*command: str | Path) -> str:
    """Run a command and return its output. Raise an error if the command fails."""
    print("$", *command, flush=True)
    done = subprocess.run(
        list(map(str, command)), env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


def base_image(folder: Path) -> str:
    """Return the base image that BASE names. If BASE isn't set, create a Debian base image."""
    named = os.environ.get("BASE")
    if named:
        return named
    archive = folder / "base.tar"
    run("mmdebstrap", "--variant=minbase", "--quiet", "bookworm", archive)
    container = run("buildah", "from", "scratch")
    run("buildah", "add", "--quiet", container, archive, "/")
    run("buildah", "commit", "--quiet", "--rm", container, BASE)
    return BASE


def build(folder: Path, base: str) -> None:
    """Build the image. During the build, pip trusts this machine's certificates."""
    pip = folder / "pip.conf"
    pip.write_text("[global]\ncert = /run/certificates.crt\ntimeout = 180\n", encoding="utf-8")
    run(
        *("buildah", "bud", "--quiet", "--format", "docker", "--tag", IMAGE),
        *("--build-arg", f"BASE={base}"),
        *("--volume", f"{CERTIFICATES}:/run/certificates.crt:ro"),
        *("--volume", f"{pip}:/etc/pip.conf:ro"),
        ROOT,
    )


@contextmanager
def mounted(image: str) -> Iterator[Path]:
    """Create a container from the image, and yield the container's root folder."""
    container = run("buildah", "from", image)
    try:
        yield Path(run("buildah", "mount", container))
    finally:
        run("buildah", "rm", container)


@contextmanager
def read_only(tree: Path, folder: Path) -> Iterator[Path]:
    """Mount a folder tree as a read-only root folder, but make /data writable."""
    root = folder / "root"
    root.mkdir()
    with ExitStack() as mounts:

        def mount(*arguments: str | Path) -> None:
            run("mount", *arguments)
            mounts.callback(run, "umount", arguments[-1])

        mount("--bind", tree, root)
        run("mount", "-o", "remount,ro,bind", root)
        mount("-t", "tmpfs", "-o", "uid=65532,gid=65532,mode=700", "tmpfs", root / "data")
        mount("-t", "proc", "proc", root / "proc")
        mount("--bind", "/dev", root / "dev")
        yield root


def megabytes(tree: Path) -> int:
    """Return the size of a folder tree in megabytes."""
    return int(run("du", "--summarize", "--block-size=1M", "--one-file-system", tree).split()[0])


async def serve(root: Path, slack: RunningSlack, database_url: str) -> asyncio.subprocess.Process:
    """Start the bot with only the image's environment variables and the bot's settings."""
    settings = {
        "HOST": "127.0.0.1",
        "PORT": str(PORT),
        "DATABASE_URL": database_url,
        "SLACK_API_URL": slack.api_url,
        "SLACK_BOT_TOKEN": "xoxb-sandbox",
        "SLACK_SIGNING_SECRET": slack.signing_secret,
        "ALERTS_CHANNEL": "C0ALERTS",
        "APPROVALS_CHANNEL": "C0APPROVALS",
    }
    pairs = [f"{name}={value}" for name, value in settings.items()]
    return await start(root, *pairs, "gatehouse")


async def start(root: Path, *words: str, **options: Any) -> asyncio.subprocess.Process:
    """Start a command with the image's environment variables.

    Words in the form `NAME=value` set additional variables.
    """
    image = json.loads(run("buildah", "inspect", "--type", "image", IMAGE))
    return await asyncio.create_subprocess_exec(
        *(shutil.which("chroot") or "chroot", f"--userspec={USER}", str(root)),
        *("/usr/bin/env", "-i", "-C", "/data", *image["OCIv1"]["config"]["Env"], *words),
        **options,
    )


async def until_ready() -> None:
    """Wait until `/readyz` responds with 200."""
    async with aiohttp.ClientSession() as session, asyncio.timeout(READY_SECONDS):
        while True:
            try:
                async with session.get(f"http://127.0.0.1:{PORT}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.1)


async def try_it(root: Path) -> float:
    """Start the bot, send a command, and return how many seconds the bot takes to stop."""
    async with own_database(server_url()) as url, running_slack() as slack:
        process = await serve(root, slack, url)
        try:
            await until_ready()
            slack.bot_url = f"http://127.0.0.1:{PORT}"
            delivery = await slack.command("U0ADMIN", "C0GENERAL", "/gatehouse", "whoami")
            assert (delivery.status, delivery.error) == (200, None)
            await slack.until(lambda: slack.workspace.ephemerals("U0ADMIN"))
            started = time.monotonic()
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(2 * STOP_SECONDS):
                status = await process.wait()
            assert status == 0, f"it ended with {status}"
            return time.monotonic() - started
        finally:
            if process.returncode is None:
                process.kill()


async def try_the_sandbox(root: Path) -> None:
    """Test that the sandbox opens at the address that it prints, and refuses other host names."""
    process = await start(root, "gatehouse", "sandbox", stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        [address] = re.findall(r"^Gatehouse is at (http://127\.0\.0\.1:\d+) ", line)
        async with aiohttp.ClientSession() as session:
            for headers, status in (({}, 200), ({"Host": "gatehouse.example.com"}, 403)):
                async with session.get(address, headers=headers) as answer:
                    assert answer.status == status
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()


def main() -> int:
    """Build, measure and run the image. Return 0 if everything works."""
    with tempfile.TemporaryDirectory(prefix="gatehouse-image-") as name:
        folder = Path(name)
        base = base_image(folder)
        build(folder, base)
        with mounted(base) as tree:
            below = megabytes(tree)
        with mounted(IMAGE) as tree:
            above = megabytes(tree) - below
            assert not list(tree.glob("opt/gatehouse/bin/pip*")), "pip is in the image"
            assert not (tree / "usr/bin/gcc").exists(), "a compiler is in the image"
            with read_only(tree, folder) as root:
                seconds = asyncio.run(try_it(root))
                asyncio.run(try_the_sandbox(root))
    print(
        f"{above} MB above its base; ready, answered, stopped in {seconds:.1f} s; the sandbox too"
    )
    return int(above > MOST_MEGABYTES or seconds > STOP_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
