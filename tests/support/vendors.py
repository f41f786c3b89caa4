"""Runs `gatehouse setup` with correct answers against stand-ins for Slack and the vendors."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from sandbox.services.oauth_tokens import CLIENT_ID, CLIENT_SECRET, self_client_code
from sandbox.services.running import RunningServices, running_services
from sandbox.services.state import (
    EMAIL_KEY,
    FLOW_ACCOUNT_SID,
    FLOW_AUTH_TOKEN,
    SURVEY_FLOW,
    WELCOME_FLOW,
    ServicesState,
)
from sandbox.slack.server import RunningSlack, running_slack
from tests.support.forks import run_forked


@dataclass
class Place:
    """The folder in which `gatehouse setup` runs, and the stand-ins that the command calls."""

    slack: RunningSlack
    services: RunningServices
    folder: Path
    answers: dict[str, Any]
    # An installed program; if empty, fork a process that has already imported the bot.
    program: tuple[str | Path, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.folder / "gatehouse.toml"

    def set(self, path: str, value: object) -> None:
        """Change an answer. `path` consists of the answer's keys, separated by slashes.

        None removes the answer.
        """
        answers, (*keys, last) = self.answers, path.split("/")
        for key in keys:
            answers = answers[key]
        answers[last] = value
        if value is None:
            del answers[last]

    async def set_up(self) -> tuple[int, str]:
        """Run `gatehouse setup` with the answers, and return the exit status and the output."""
        file = self.folder / "answers.toml"
        file.write_text(tomli_w.dumps(self.answers), encoding="utf-8")
        return await self.run("setup", "--answers", str(file), "--out", str(self.out))

    async def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """Run the program, and return the exit status and the output."""
        given = {
            "PATH": os.environ["PATH"],
            "GATEHOUSE_CONFIG": "",
            "SLACK_API_URL": self.slack.api_url,
            "DATABASE_URL": f"sqlite:///{self.folder}/gatehouse.db",
            **self.environment,
            **environment,
        }
        if not self.program:
            return await run_forked(arguments, given)
        process = await asyncio.create_subprocess_exec(
            *self.program,
            *arguments,
            cwd=self.folder,
            env=given,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        return process.returncode or 0, said.decode()


def right_answers(services: RunningServices) -> dict[str, Any]:
    """Return setup answers that match the initial state of the stand-ins."""
    oauth = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "code": self_client_code("eu"),
        "token_url": services.token_url,
    }
    base_url = services.inventory_url("eu")
    return {
        "slack_bot_token": "xoxb-sandbox",
        "slack_signing_secret": "sandbox-signing-secret",
        "alerts_channel": "#alerts",
        "approvals_channel": "#approvals",
        "flow_base_url": services.url,
        "flow_account_sid": FLOW_ACCOUNT_SID,
        "flow_auth_token": FLOW_AUTH_TOKEN,
        "email_base_url": services.url,
        "email_api_key": EMAIL_KEY,
        "setup": {
            "url": "https://bot.example.com",
            "inventory": "zoho",
            "flow": "twilio",
            "email": "sendgrid",
        },
        "roles": {
            "viewer": ["*"],
            "operator": ["@otto"],
            "approver": ["@Ada Approver", "@approvers"],
            "admin": ["U0ADMIN"],
        },
        "inventory_data_centers": {"eu": {"base_url": base_url, "oauth": oauth}},
        "flow_aliases": {"welcome": WELCOME_FLOW, "survey": SURVEY_FLOW},
    }


@asynccontextmanager
async def running_place(folder: Path, *program: str | Path) -> AsyncIterator[Place]:
    """Run stand-ins for Slack and the vendors, and yield a `Place` that uses the stand-ins."""
    state = ServicesState()
    state.behave_as_vendors()
    async with running_services(state) as services, running_slack() as slack:
        yield Place(slack, services, folder, right_answers(services), program)
