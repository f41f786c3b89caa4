"""Every parser and every regular expression runs in linear time."""

import contextlib
import importlib
import json
import pkgutil
import re
import time
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

import pytest

import bot
import handlers
from bot.approvals.times import parse_duration, parse_when
from bot.emailkey import parse_emailkey
from bot.errors import UsageError
from bot.gatehouse import parse_gatehouse
from bot.gateway import rules as gateway
from bot.gateway.rules import GatewayRefusal
from bot.ops.redaction import Redactor
from bot.organizations.parse import parse_orgs
from bot.quotas.parse import parse_ratelimits
from bot.services.errors import plain_words
from bot.settings import SettingsError
from bot.settings.files import find_sources
from bot.slack.messages import text
from bot.slack.parse import read_words
from bot.spelling import folded, tidy_identity
from bot.testusers.parse.command import Prefilled, parse_form, parse_testusers
from bot.testusers.parse.identities import is_identity
from handlers.conversation import command_in
from handlers.endpoint import _json, parse_qsl

LENGTH, NOISE_SECONDS = 2048, 0.02
# Eight times the text takes a linear parser 8 times as long, and a quadratic one 64 times.
LONGER, MOST_GROWTH, MEASUREMENTS = 8, 22, 4
RUNS = [bytes([number]).decode("latin-1") for number in range(256)]
REFUSALS = (UsageError, GatewayRefusal, SettingsError, ValueError, RecursionError)
ROOTS = {"eu": "https://inventory.example.eu/inventory/v1"}


def form(typed: str) -> object:
    return parse_form(
        Prefilled("welcome", duration=typed, reason=typed, lines=tuple(typed.split("\n")))
    )


PARSERS: Mapping[str, Callable[[str], object]] = {
    "gatehouse": parse_gatehouse,
    "emailkey": parse_emailkey,
    "orgs": parse_orgs,
    "ratelimits": parse_ratelimits,
    "testusers": parse_testusers,
    "testusers add": lambda typed: parse_testusers(f"add welcome {typed}"),
    "testusers because": lambda typed: parse_testusers(f"add welcome +1 because {typed}"),
    "form": form,
    "message": lambda typed: command_in(typed, "U0BOT"),
    "words": read_words,
    "words with commas": lambda typed: read_words(typed, commas=True),
    "identity": is_identity,
    "tidy": tidy_identity,
    "folded": folded,
    "duration": parse_duration,
    "time": lambda typed: parse_when([typed]),
    "escape": text.escape,
    "sentence": text.sentence,
    "refusal": lambda typed: plain_words(typed, Redactor(["hunter2-token"])),
    "JSON of Slack": _json,
    "JSON of settings": json.loads,
    "form of Slack": parse_qsl,
    "gateway path": lambda typed: gateway.target_of(f"/eu/{typed}", ROOTS),
    "gateway query": lambda typed: gateway.target_of(f"/eu/items?{typed}", ROOTS),
    "gateway token": lambda typed: gateway.tokens_of([typed], f"/eu/x?{typed}", ["bearer"]),
    "gateway headers": lambda typed: gateway.headers_to_send([("X", typed), ("Prefer", typed)]),
    "gateway wait": lambda typed: gateway.seconds_to_wait([typed]),
}


def modules() -> Iterator[ModuleType]:
    """Import each of the bot's modules."""
    for package in (bot, handlers):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "migrations" not in found.name and not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


PATTERNS = {
    f"{module.__name__}.{name}": value
    for module in modules()
    for name, value in vars(module).items()
    if isinstance(value, re.Pattern)
}


def seconds(parse: Callable[[str], object], typed: str) -> float:
    """Return the CPU time of one parser call, in seconds."""
    began = time.thread_time()
    with contextlib.suppress(*REFUSALS):
        parse(typed)
    return time.thread_time() - began


def grows_too_fast(parse: Callable[[str], object], run: str) -> bool:
    """Return True if the parsing time grows much faster than the length of the text."""
    short, long = run * LENGTH, run * LONGER * LENGTH
    if seconds(parse, long) < NOISE_SECONDS:
        return False
    shortest = min(seconds(parse, short) for _ in range(3))
    return min(seconds(parse, long) for _ in range(3)) > max(NOISE_SECONDS, MOST_GROWTH * shortest)


def slow_runs(parse: Callable[[str], object]) -> list[str]:
    """Return the first character that was slow to parse in every measurement, if there is one.

    One measurement isn't enough, because other programs can distort it.
    """
    return [run for run in RUNS if all(grows_too_fast(parse, run) for _ in range(MEASUREMENTS))][:1]


@pytest.mark.parametrize("name", PARSERS)
def test_parser_is_linear(name):
    assert slow_runs(PARSERS[name]) == []


def test_settings_file_is_read_in_linear_time(tmp_path):
    path = tmp_path / "gatehouse.toml"

    def read(typed: str) -> None:
        path.write_text(f'a = "{typed}"\n', encoding="utf-8")
        find_sources({"GATEHOUSE_CONFIG": str(path)})

    assert slow_runs(read) == []


@pytest.mark.parametrize("name", PATTERNS)
def test_regular_expression_is_linear(name):
    pattern = PATTERNS[name]

    def match(typed: str) -> None:
        subject = typed.encode("latin-1") if isinstance(pattern.pattern, bytes) else typed
        # A pattern used for searching is covered by the test of its parser.
        pattern.match(subject)
        pattern.fullmatch(subject)

    assert slow_runs(match) == []
