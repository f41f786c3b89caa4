"""Print the functions that run from a `/testusers add` command until its card is posted.

    python -m tests.walk

Each line shows the name of a file and the functions that ran in that file. The files are listed in
the order in which they were first used.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import structlog

from tests.support.steady import SteadyLoop
from tests.support.world import running_world

ROOT = Path(__file__).resolve().parents[1]
COMMAND = "welcome +15550142 because the demo is on Friday"


@contextmanager
def watched() -> Iterator[dict[str, dict[str, None]]]:
    """Record which of the bot's functions run inside the block, grouped by file."""
    seen: dict[str, dict[str, None]] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith((f"{ROOT}/bot/", f"{ROOT}/handlers/")):
            file = str(Path(path).relative_to(ROOT))
            seen.setdefault(file, {})[frame.f_code.co_qualname] = None

    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)


async def walk() -> dict[str, dict[str, None]]:
    """Return the functions that run from the command until the card is posted, grouped by file."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/gatehouse.db"
        async with running_world(url, inventory_watch="off") as world:
            await world.ask("U0OPERATOR", "/testusers", "list welcome")
            with watched() as seen:
                await world.slack.command("U0OPERATOR", "C0GENERAL", "/testusers", f"add {COMMAND}")
                await world.slack.until(lambda: world.slack.workspace.messages("C0APPROVALS"))
    return seen


def main() -> None:
    """Print the functions in each file, and then the number of files and functions."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with asyncio.Runner(loop_factory=SteadyLoop) as runner:
        seen = runner.run(walk())
    for file, functions in seen.items():
        print(f"{file}: {', '.join(functions)}")
    print(f"\n{len(seen)} files, {sum(map(len, seen.values()))} functions")


if __name__ == "__main__":
    main()
