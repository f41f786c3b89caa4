"""Two processes share a PostgreSQL database, and each piece of work is done only once."""

import asyncio
import itertools
import json

import pytest

from bot.migrations import known_revisions
from tests.support import revision_0020
from tests.support.fleet import running_fleet
from tests.support.world import ABEL, ADA, OTTO, WELCOME


@pytest.fixture
async def pair(postgres_url):
    async with running_fleet(postgres_url, 2, commands_per_minute="0") as fleet:
        flow(fleet).identities.clear()
        yield fleet
        assert fleet.tracebacks == []


def flow(pair):
    return pair.services.state.flows[WELCOME]


async def asked(pair, *identities):
    """Make a separate request for each identity. Return the cards."""
    for identity in identities:
        await pair.slack.command(OTTO, "C0GENERAL", "/testusers", f"add welcome {identity}")
    cards = pair.slack.workspace.messages
    await pair.slack.until(lambda: len(cards("C0APPROVALS")) == len(identities))
    return cards("C0APPROVALS")


async def approve(pair, process: int, user: str, card) -> None:
    # The address is read before the first wait, so simultaneous clicks reach their processes.
    pair.slack.bot_url = pair.processes[process].address
    delivery = await pair.slack.click(user, card, "Approve")
    assert delivery.status == 200


def said(pair, user: str) -> str:
    return json.dumps([item.text for item in pair.seen_by(user)])


@pytest.mark.postgres
async def test_two_approvers_in_two_processes_are_one_post(pair):
    (card,) = await asked(pair, "+1")
    await asyncio.gather(approve(pair, 0, ADA, card), approve(pair, 1, ABEL, card))
    await pair.slack.until(lambda: "Applied" in card.all_text)
    await pair.slack.until(lambda: "pproved" in said(pair, ADA))
    await pair.slack.until(lambda: "pproved" in said(pair, ABEL))
    assert flow(pair).history == [["+1"]]
    answers = said(pair, ADA) + said(pair, ABEL)
    assert answers.count("You approved") == 1
    assert answers.count("already approved this") == 1


@pytest.mark.postgres
async def test_approvals_at_once_are_all_there_with_few_calls(pair):
    names = [f"+{n}" for n in range(12)]
    cards = await asked(pair, *names)
    # A slow service leaves time to approve the others while the first is being sent.
    pair.services.state.latency_seconds = 1.0
    before = len(pair.services.state.calls)
    await asyncio.gather(*(approve(pair, n % 2, ADA, card) for n, card in enumerate(cards)))
    await pair.slack.until(lambda: all("Applied" in card.all_text for card in cards))
    assert sorted(flow(pair).identities) == sorted(names)
    assert len(pair.services.state.calls) - before <= 12
    posts = [set(identities) for identities in flow(pair).history]
    assert all(earlier < later for earlier, later in itertools.pairwise(posts))


@pytest.mark.postgres
async def test_home_shows_the_click_that_another_process_carries_out(pair):
    pair.slack.bot_url = pair.processes[0].address
    (card,) = await asked(pair, "+1")
    await pair.slack.open_home(ADA)
    home = await pair.slack.until(lambda: pair.slack.workspace.homes[ADA])
    assert "`+1`" in home.all_text
    await approve(pair, 1, ADA, card)
    await pair.slack.until(lambda: "Nothing is waiting for you" in home.all_text)


@pytest.mark.postgres
async def test_process_of_an_older_version_leaves_clicks_of_its_socket(postgres_url):
    settings = {"slack_app_token": "xapp-sandbox", "commands_per_minute": "0"}
    async with running_fleet(postgres_url, **settings) as fleet:
        flow(fleet).identities.clear()
        (process,) = fleet.processes
        (card,) = await asked(fleet, "+1")
        assert fleet.slack.sockets == 1
        await revision_0020.set_revision(postgres_url, "9999")
        async with asyncio.timeout(60):
            # An earlier answer is cached for a moment.
            while await process.readiness() != (503, "schema"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await fleet.slack.click(ADA, card, "Approve")
        await fleet.slack.until(lambda: "again in a moment" in said(fleet, ADA))
        await revision_0020.set_revision(postgres_url, known_revisions()[-1])
        await process.ready()
        assert flow(fleet).history == []
        await fleet.slack.click(ADA, card, "Approve")
        await fleet.slack.until(lambda: "Applied" in card.all_text)
        assert fleet.tracebacks == []
