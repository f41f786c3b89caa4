"""Runs `gatehouse setup` with correct answers against stand-ins for Slack and the vendors."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
        """Change an answer. `path` consists of the answer's keys, separated by slashes."""
        answers, (*keys, last) = self.answers, path.split("/")
        for key in keys:
            answers = answers[key]
        answers[last] = value

    async def set_up(self) -> tuple[int, str]:
        """Run `gatehouse setup` with the answers, and return the exit status and the output."""
        file = self.folder / "answers.json"
        file.write_text(json.dumps(self.answers), encoding="utf-8")
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
    client = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
    return {
        "slack_bot_token": "xoxb-sandbox",
        "slack_signing_secret": "sandbox-signing-secret",
        "url": "https://bot.example.com",
        "alerts_channel": "#alerts",
        "approvals_channel": "#approvals",
        "viewers": ["*"],
        "operators": ["@otto"],
        "approvers": ["@Ada Approver", "approvers"],
        "admins": ["U0ADMIN"],
        "inventory": {
            "vendor": "zoho",
            "base_url": services.url + "/{data_center}/inventory/v1",
            "token_url": services.token_url,
            "data_centers": {"eu": {**client, "code": self_client_code("eu")}},
        },
        "flow": {
            "vendor": "twilio",
            "base_url": services.url,
            "account_sid": FLOW_ACCOUNT_SID,
            "auth_token": FLOW_AUTH_TOKEN,
            "aliases": {"welcome": WELCOME_FLOW, "survey": SURVEY_FLOW},
        },
        "email": {"vendor": "sendgrid", "base_url": services.url, "api_key": EMAIL_KEY},
    }


@asynccontextmanager
async def running_place(folder: Path, *program: str | Path) -> AsyncIterator[Place]:
    """Run stand-ins for Slack and the vendors, and yield a `Place` that uses the stand-ins."""
    state = ServicesState()
    state.behave_as_vendors()
    async with running_services(state) as services, running_slack() as slack:
        yield Place(slack, services, folder, right_answers(services), program)
