"""Tells whether the README's pictures still show what the bot says.

`make screenshots` saves the words of the messages in the pictures, and a fingerprint of the
sandbox's page, beside the pictures. `make release-check` compares them with those of today.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from sandbox.slack.messages import Message
from tests.support.databases import migrated_file
from tests.support.steady import run_steadily
from tests.support.world import ADA, OTTO, World, empty_world

ROOT = Path(__file__).resolve().parents[2]
PICTURES, PAGE = ROOT / "docs" / "pictures", ROOT / "sandbox" / "page"
WORDS = "words.json"
ASKS = "add welcome +15550142 whatsapp:+15550177 for 2h because trying the new draft"
ORGANIZATION = "20077314"


def words_of_today() -> dict[str, list[str]]:
    """Return the words in each picture, as the bot says them now, and the page's fingerprint."""
    with tempfile.TemporaryDirectory() as folder:
        database = migrated_file(Path(folder) / "gatehouse.db")
        words = run_steadily(_said(f"sqlite:///{database}"))
    page = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(PAGE.iterdir())))
    return {**words, "page": [page.hexdigest()]}


async def _said(database_url: str) -> dict[str, list[str]]:
    async with empty_world(database_url, inventory_watch="off") as world:
        asks = await world.ask(OTTO, "/testusers", ASKS)
        card = await world.card()
        approval = [*words_in(card)]
        await world.slack.click(ADA, card, "Approve")
        await world.shows(card, "*Applied*")
        approval += words_in(card)
        listed = await world.ask(OTTO, "/testusers", "list welcome")
        await world.slack.click(OTTO, listed, "Share in channel")
        shared = await world.slack.until(lambda: world.slack.workspace.messages("C0GENERAL")[0])
        quota = await world.ask(OTTO, "/ratelimits", ORGANIZATION)
        return {
            "approval.png": approval,
            "quota.png": words_in(quota),
            "alert.png": words_in(await _alert(world)),
            "demo.webp": [*words_in(asks), *approval, *words_in(listed), *words_in(shared)],
        }


async def _alert(world: World) -> Message:
    world.services.state.limits.block(("eu", ORGANIZATION), 44, None)
    await world.ask(OTTO, "/ratelimits", f"check {ORGANIZATION}")
    return await world.slack.until(lambda: world.slack.workspace.messages("C0ALERTS")[0])


def words_in(message: Message) -> list[str]:
    """Return each line and button of a message once, without numbers and times."""
    lines = [*message.all_text.splitlines(), *message.buttons]
    plain = [re.sub(r"\d+", "0", re.sub(r"\|[^>|]*>", ">", line)) for line in lines]
    return [*dict.fromkeys(plain)]


def outdated(saved: Mapping[str, list[str]], today: Mapping[str, list[str]]) -> list[str]:
    """Return a problem for each picture whose words aren't those that the bot says today."""
    problems = []
    for picture, words in today.items():
        shown = saved.get(picture, [])
        if shown != words:
            line = next((line for line in words if line not in shown), "less than before")
            problems.append(f"docs/pictures ({picture}): run make screenshots; now it says: {line}")
    return problems


def save_words(folder: Path = PICTURES) -> None:
    """Save today's words beside the pictures."""
    text = json.dumps(words_of_today(), indent=1, ensure_ascii=False)
    (folder / WORDS).write_text(f"{text}\n", encoding="utf-8")


def outdated_pictures(folder: Path = PICTURES) -> list[str]:
    """Return a problem for each of the README's pictures that is outdated."""
    return outdated(json.loads((folder / WORDS).read_text(encoding="utf-8")), words_of_today())
