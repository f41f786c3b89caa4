"""Asks a bot everything about the requests and lists in its database."""

import re
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from sandbox.slack.messages import Json, Message
from tests.support.upgrades import StoredDay
from tests.support.upgrades.day import FLOWS, MORNING, DayClock, opened, settle, unreadable
from tests.support.world import ADA, OTTO, World

Answers = dict[str, Any]
# Makes the bot post all cards again.
REDRAW = """
DELETE FROM cards WHERE key LIKE 'request:%';
UPDATE jobs SET due_at = 0 WHERE kind = 'send';
INSERT INTO outbox_messages (key, kind, subject, payload, created_at)
SELECT 'request:' || id, 'testusers.card', id, '{}', created_at FROM requests;
INSERT INTO jobs (key, kind, subject, payload, due_at, generation, tries)
SELECT 'send:request:' || id, 'send', 'request:' || id, '{}', 0, 0, 0 FROM requests
WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.key = 'send:request:' || requests.id)
"""


async def answers_of(url: str, day: StoredDay) -> Answers:
    """Run a bot on the database of a stored day, and return everything that it says."""
    clock = DayClock(datetime.fromisoformat(day["at"]))
    async with opened(url, clock, day["lists"], **MORNING) as world:
        # The outcome of one change stays unknown until the later questions.
        world.services.state.faults.add(unreadable())
        return await Questions(world).everything(FLOWS)


class Questions:
    """Asks the bot in a world, as an operator and an approver."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def everything(self, flows: tuple[str, ...]) -> Answers:
        """Return all answers. Later questions change requests, so the order matters."""
        world, answers = self.world, {}
        async with world.bot.database.transaction() as tx:
            for statement in REDRAW.split(";"):
                await tx.connection.execute(text(statement))
        # A POST in doubt is decided within a minute.
        await settle(world, 120)
        workspace = world.slack.workspace
        answers["told"] = {
            who: sorted(item.text.split("\n<")[0] for item in workspace.dm(who))
            for who in (OTTO, ADA)
        }
        answers["lists"] = self.lists()
        for flow in flows:
            answers[f"list {flow}"] = await self.pages(OTTO, f"list {flow}")
            answers[f"history {flow}"] = await self.pages(OTTO, f"history {flow}")
        answers["review"] = await self.pages(OTTO, "review")
        answers["requests"] = await self.pages(ADA, "requests")
        for who in (OTTO, ADA):
            answers[f"mine {who}"] = await self.pages(who, "mine")
            answers[f"home {who}"] = await self.home(who)
        cards = await self.cards()
        answers["cards"] = {name: said(card) for name, card in cards.items()}
        answers["extend"] = await self.extensions()
        answers["undo"] = {
            name: await self.undone(card) for name, card in cards.items() if "Undo" in card.buttons
        }
        world.services.state.faults.lift()
        await world.later(world.clock.ahead + timedelta(minutes=12))
        await settle(world, 20)
        answers["decided"] = {
            name: said(card)
            for name, card in cards.items()
            if said(card) != answers["cards"][name] and "Undo" in card.buttons
        }
        answers["retry"] = {
            name: await self.retried(card)
            for name, card in cards.items()
            if "Retry" in card.buttons
        }
        return answers

    def lists(self) -> dict[str, list[str]]:
        """Return the lists that the flow service has."""
        flows = self.world.services.state.flows
        return {sid: list(flow.identities) for sid, flow in sorted(flows.items())}

    async def cards(self) -> dict[str, Message]:
        """Return the current card of each request, keyed by the request's ID."""
        async with self.world.bot.database.read_only() as tx:
            query = text("SELECT key, message_ts FROM cards WHERE key LIKE 'request:%'")
            rows = (await tx.connection.execute(query)).all()
        by_ts = {card.ts: card for card in self.world.cards()}
        return {key.partition(":")[2]: by_ts[ts] for key, ts in sorted(rows)}

    async def pages(self, who: str, question: str) -> list[Json]:
        """Return all pages of an answer."""
        page = await self.world.ask(who, "/testusers", question)
        found = [said(page)]
        while "Next" in page.buttons:
            before, was = len(self.world.slack.workspace.ephemerals(who)), page.all_text
            await self.world.slack.click(who, page, "Next")

            def next_page(before: int = before, was: str = was) -> Message | None:
                new = self.world.slack.workspace.ephemerals(who)
                return new[-1] if len(new) > before or new[-1].all_text != was else None

            page = await self.world.slack.until(next_page)
            found.append(said(page))
        return found

    async def home(self, who: str) -> Json:
        """Return a person's Home tab."""
        await self.world.slack.open_home(who)
        view = await self.world.slack.until(lambda: self.world.slack.workspace.homes[who])
        await settle(self.world, 3)
        view = self.world.slack.workspace.homes[who]
        return said(view)

    async def undone(self, card: Message) -> Json:
        """Ask to undo a change, return the new card, and cancel the new request."""
        cards = self.world.cards
        before = len(cards())
        reply = await self.world.click(OTTO, card, "Undo")
        if len(cards()) == before:
            await settle(self.world, 5)
        if len(cards()) == before and "Sent to" not in reply.all_text:
            return {"refused": reply.all_text}
        # If the clock was moved while its job ran, the card is posted at the next try.
        new = await self.world.card(before)
        shown = said(new)
        if "Cancel" in new.buttons:
            await self.world.slack.click(OTTO, new, "Cancel")
            await self.world.slack.until(lambda: "Cancel" not in new.buttons)
        await self.world.slack.until(lambda: "Undo" in card.buttons)
        return shown

    async def extensions(self) -> list[Json]:
        """Open the form of each `Extend` on the first page of an operator's own requests."""
        workspace, found = self.world.slack.workspace, []
        page = await self.world.ask(OTTO, "/testusers", "mine")
        for block, element in page.elements:
            if element.get("text", {}).get("text") not in {"Extend", "Set an end date"}:
                continue
            name = element["text"]["text"]
            await self.world.slack.click(OTTO, page, name, block_id=block["block_id"])
            view = await self.world.form()
            found.append(filled(view.body))
            workspace.close(view)
        return found

    async def retried(self, card: Message) -> Json:
        """Retry a failed change, and return the card and the lists."""
        await self.world.slack.click(ADA, card, "Retry")
        await settle(self.world, 90)
        return {**said(card), "lists": self.lists()}


def said(place: Any) -> Json:
    """Return what a message or view says, and its buttons."""
    buttons = [element for _, element in place.elements if element.get("type") == "button"]
    # Besides its blocks, a message has a shorter text, which is left out.
    text = place.all_text.removeprefix(getattr(place, "text", "")).strip()
    return {"text": text, "buttons": [item["text"]["text"] for item in buttons]}


def filled(body: Json) -> dict[str, Any]:
    """Return the values that a form's inputs are filled with."""
    found = {}
    for block in body["blocks"]:
        element = block.get("element", {})
        for name in ("initial_value", "initial_option", "initial_date_time"):
            if name in element:
                value = element[name]
                value = value["text"]["text"] if isinstance(value, dict) else value
                found[str(block["label"]["text"])] = value
    return found


# The facts that any version says, whatever its words are.
IDENTITY, UNTIL = re.compile(r"`([^`]+)`"), re.compile(r"until <!date\^(\d+)\^")
BY = re.compile(r"(?:requested|approved) by ([\w ,]+)|without approval")
WANTS = re.compile(r"wants to (add|remove|keep)\b")
BUTTONS = ("Approve", "Deny", "Cancel", "Retry", "Undo")


def facts(answers: Answers) -> Answers:
    """Return the part of the answers that doesn't depend on their wording."""
    lists = {name: answers[name] for name in answers if name.startswith("list ")}
    return {
        "lists": answers["lists"],
        "access": {
            name: [line for page in pages for line in access(page["text"])]
            for name, pages in lists.items()
        },
        "cards": {name: card_facts(card) for name, card in answers["cards"].items()},
        "undo": {name: effect(card) for name, card in answers["undo"].items()},
        "retry": {name: card["lists"] for name, card in answers["retry"].items()},
    }


def access(text: str) -> list[Json]:
    """Return who is on a list according to an answer, until when, and by whom."""
    lines = [line for line in text.split("\n") if line.startswith("• `")]
    return [
        {
            "who": IDENTITY.findall(line)[0],
            "until": [int(date) for date in UNTIL.findall(line)],
            "by": [match.group() for match in BY.finditer(line)],
        }
        for line in lines
    ]


def card_facts(card: Json) -> Json:
    """Return whom a card names, the request's state, and the buttons."""
    return {
        "state": card["text"].split()[0],
        "who": people(card["text"]),
        "buttons": [button for button in card["buttons"] if button in BUTTONS],
    }


def effect(card: Json) -> Json:
    """Return what a request would do according to its card."""
    text = card.get("text", "").split(":warning:")[0]
    dates = sorted({int(date) for date in UNTIL.findall(text)})
    return {"does": WANTS.findall(text), "who": people(text), "until": dates}


def people(text: str) -> list[str]:
    """Return the identities in a text."""
    return sorted({item for item in IDENTITY.findall(text) if not item.startswith("FW")})
