"""`gatehouse setup` asks twelve questions, hides secrets, and asks again after a mistake."""

import asyncio
import os
import pty
import re
import stat
import sys

import pytest

from bot.settings.model import SERVICES
from sandbox.services.oauth_tokens import CLIENT_ID, CLIENT_SECRET
from sandbox.services.state import EMAIL_KEY, FLOW_ACCOUNT_SID, FLOW_AUTH_TOKEN
from tests.setup.test_answers import settings_in

pytestmark = pytest.mark.slow
PATIENCE_SECONDS = 60


class Terminal:
    """Simulates a person at a terminal, who waits for each question and then types an answer."""

    def __init__(self, place):
        self.place, self.shown, self._seen = place, "", 0
        self._master, self._slave = pty.openpty()
        self._came = asyncio.Event()

    async def __aenter__(self):
        asyncio.get_running_loop().add_reader(self._master, self._read)
        place = self.place
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot"),
            *("setup", "--out", str(place.out)),
            env={
                "PATH": os.environ["PATH"],
                "SLACK_API_URL": place.slack.api_url,
                "DATABASE_URL": f"sqlite:///{place.folder}/gatehouse.db",
            },
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            start_new_session=True,
        )
        return self

    async def __aexit__(self, *_):
        asyncio.get_running_loop().remove_reader(self._master)
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def _read(self):
        self.shown += os.read(self._master, 65536).decode()
        self._came.set()

    async def until(self, words):
        """Wait until these words appear in the output that follows the previous match."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (at := self.shown.find(words, self._seen)) < 0:
                self._came.clear()
                await self._came.wait()
        self._seen = at + len(words)

    async def answer(self, question, *answers):
        for text in answers:
            await self.until(question)
            await self.until(": ")
            self.type(text)

    def type(self, text):
        os.write(self._master, f"{text}\n".encode())


async def test_a_person_at_a_terminal_gets_a_checked_file(place):
    url, token_url = place.services.url, place.services.token_url
    base_url = f"{url}/{{data_center}}/inventory/v1"
    async with Terminal(place) as terminal:
        for question, *answers in (
            ("(1 of 12)", "http://bot.example.com", "https://bot.example.com"),
            ("(2 of 12) Paste the Bot", "xoxb-wrong", "xoxb-sandbox"),
            ("(2 of 12) Paste the Signing", "xoxb-sandbox", "sandbox-signing-secret"),
            ("(3 of 12) Which channel", "#alarts", ""),
            ("(3 of 12) Which private channel", "#alerts", ""),
            ("(4 of 12)", "@oto", "otto"),
            ("(5 of 12)", "*", ""),
            ("(6 of 12)", "", "@ada approvers"),
            ("(7 of 12)", f"zoho {base_url} {token_url} uk", f"zoho {base_url} {token_url} EU in"),
            ("(8 of 12) eu: Enter the client ID", CLIENT_ID),
            ("(8 of 12) eu: Enter the client secret", CLIENT_SECRET),
            ("(8 of 12) eu: Enter the code", "demo-code-old"),
            ("(8 of 12) eu: Enter the client ID", CLIENT_ID),
            ("(8 of 12) eu: Enter the client secret", CLIENT_SECRET),
            ("(8 of 12) eu: Enter the code", "demo-code-eu"),
            ("(9 of 12)", "1"),
            ("(8 of 12) in: Enter the client ID", CLIENT_ID),
            ("(8 of 12) in: Enter the client secret", CLIENT_SECRET),
            ("(8 of 12) in: Enter the code", "demo-code-in"),
            ("(9 of 12)", ""),
            ("(10 of 12) Enter the Twilio", f"twilio {url} {FLOW_ACCOUNT_SID}"),
            ("(10 of 12) Enter the auth token", FLOW_AUTH_TOKEN),
            ("(11 of 12)", "7", ""),
            ("(12 of 12) Enter the address", url),
            ("(12 of 12) Enter the API key", EMAIL_KEY),
        ):
            # After the last answer, the result may appear immediately.
            assert not [*place.folder.iterdir()]
            await terminal.answer(question, *answers)
        await terminal.until("All is well.")
        assert await terminal.process.wait() == 0
    shown = terminal.shown
    assert max(map(int, re.findall(r"\((\d+) of 12\)", shown))) == 12
    assert "https://api.slack.com/apps?new_app=1&manifest_json=" in shown
    for mistake in (
        "Slack calls only https:// addresses",
        "refuses slack_bot_token (invalid_auth)",
        "is a token, not the Signing Secret",
        "named “#alarts”",
        "is public, but the cards in it show identities",
        "named “@oto”",
        "admin: can't be *",
        "No request for flows without their own policy",
        "Enter data centers",
        "   eu: code was rejected (invalid_code)",
        "Enter numbers from 1 to 2",
    ):
        assert mistake in shown
    secrets = ("sandbox-signing-secret", "xoxb-", CLIENT_SECRET, "demo-code-eu", EMAIL_KEY)
    typed = shown.replace("(xoxb-…)", "")
    assert not [secret for secret in secrets if secret in typed]
    settings = settings_in(place)
    assert settings.flow_aliases.keys() == {"welcome-call", "survey"}
    assert settings.inventory_data_centers["eu"].organization_id
    assert settings.inventory_data_centers["in"].oauth
    assert {stat.S_IMODE(file.stat().st_mode) for file in place.folder.iterdir()} == {0o600}


async def test_what_cannot_be_right_is_asked_again_and_what_was_refused_can_be_skipped(place):
    base_url = f"{place.services.url}/{{data_center}}/inventory/v1"
    async with Terminal(place) as terminal:
        for question, *answers in (
            ("(1 of 12)", "https://bot.example.com"),
            ("(2 of 12) Paste the Bot", "xoxp-user-token", "xoxb-sandbox"),
            ("(2 of 12) Paste the Signing", "sandbox-signing-secret"),
            ("(3 of 12)", "", ""),
            ("(4 of 12)", "otto"),
            ("(5 of 12)", ""),
            ("(6 of 12)", "@ada"),
            ("(7 of 12)", "http://api.example.com/v1 eu", f"zoho {base_url} eu"),
            ("(8 of 12) eu: Enter the client ID", ""),
            ("(8 of 12) eu: Enter the authtoken", "demo-wrong"),
            ("(8 of 12) eu: Enter the client ID", ""),
            ("(8 of 12) eu: Enter the authtoken", ""),
            ("(10 of 12) Enter the Twilio", place.services.url, f"{place.services.url}/v2 AC1"),
            ("(10 of 12) Enter the auth token", "wrong"),
            ("(10 of 12) Enter the Twilio", ""),
            ("(12 of 12)", place.services.url, "SG.wrong", "", ""),
        ):
            await terminal.answer(question, *answers)
        await terminal.until("email was refused.")
        assert await terminal.process.wait() == 1
        assert "flow was refused." not in terminal.shown
    settings = settings_in(place)
    assert not settings.inventory_data_centers
    assert settings.missing_for("flow") == SERVICES["flow"]
    assert settings.missing_for("email") == SERVICES["email"]
