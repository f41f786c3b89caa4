"""Each log event is one line of JSON that contains the request's ID and no secrets."""

import base64
import io
import json
import logging
import warnings
from dataclasses import dataclass
from urllib.parse import quote_plus

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from bot.ops.redaction import HIDDEN, SHORTEST, Redactor
from tests.support.logs import log_into, logging_as_before

SECRET = "xoxb-very-secret"


@dataclass
class Logs:
    """Collects the log output, and checks that it doesn't contain the secret."""

    redactor: Redactor
    stream: io.StringIO

    def text(self) -> str:
        assert SECRET not in self.stream.getvalue()
        return self.stream.getvalue()

    def records(self) -> list[dict]:
        return [json.loads(line) for line in self.text().splitlines()]

    def configure(self, level: str = "INFO", style: str = "json") -> None:
        log_into(self.stream, level, style, self.redactor)


@pytest.fixture
def logs():
    """Configure logging to hide a secret, as in production.

    Restore the old logging settings afterwards.
    """
    logs = Logs(Redactor([SECRET]), io.StringIO())
    with logging_as_before():
        logs.configure()
        yield logs


def test_an_event_is_one_line_of_json(logs):
    structlog.get_logger("bot.x").info("answered", name="/orgs", seconds=0.5)
    (record,) = logs.records()
    assert record["timestamp"].endswith("Z")
    del record["timestamp"]
    assert record == {
        "event": "answered",
        "name": "/orgs",
        "seconds": 0.5,
        "level": "info",
        "logger": "bot.x",
    }


def test_warning_of_a_library_is_one_line_of_json(logs):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # pytest catches warnings with its own function; this restores that from `configure_logs`.
        logging.captureWarnings(capture=False)
        logs.configure()
        warnings.warn("is deprecated", stacklevel=1)
    (record,) = logs.records()
    assert (record["level"], record["logger"]) == ("warning", "py.warnings")
    assert "is deprecated" in record["event"]


VALUES = [
    SECRET,
    f"before {SECRET} after",
    {"a": {"b": [SECRET]}},
    {SECRET: 1},
    (SECRET, {"x"}),
    {SECRET},
    SECRET.encode(),
    ValueError(SECRET),
    type("Thing", (), {"__repr__": lambda _: SECRET})(),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_no_value_shows_a_secret(logs, value):
    structlog.get_logger("bot.x").warning("told", value=value)
    assert HIDDEN in json.dumps(logs.records()[0])


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_no_record_of_a_library_shows_a_secret(logs, value):
    logging.getLogger("some.library").warning("it says %s", value)
    (record,) = logs.records()
    assert HIDDEN in record["event"]
    assert record["logger"] == "some.library"


def raise_secret() -> None:
    raise ConnectionError(f"https://{SECRET}@example.com")


@pytest.mark.parametrize("logger", [structlog.get_logger("bot.x"), logging.getLogger("library")])
def test_no_traceback_shows_a_secret(logs, logger):
    try:
        raise_secret()
    except ConnectionError:
        logger.exception("it broke")
    (record,) = logs.records()
    assert "raise_secret" in record["exception"]
    assert HIDDEN in record["exception"]


def test_a_secret_that_comes_later_is_hidden_too(logs):
    logs.redactor.add("access-token-word")
    structlog.get_logger("bot.x").info("access-token-word", token="access-token-word")
    (record,) = logs.records()
    assert (record["event"], record["token"]) == (HIDDEN, HIDDEN)


def test_every_line_of_a_request_has_its_id(logs):
    with structlog.contextvars.bound_contextvars(request_id="abc"):
        structlog.get_logger("bot.x").info("ours")
        logging.getLogger("library").warning("theirs")
    assert [record["request_id"] for record in logs.records()] == ["abc", "abc"]


@pytest.mark.parametrize(("level", "count"), [("DEBUG", 3), ("INFO", 2), ("ERROR", 0)])
def test_the_level_is_for_all(logs, level, count):
    logs.configure(level)
    structlog.get_logger("bot.x").debug("x")
    structlog.get_logger("bot.x").info("x")
    logging.getLogger("slack_sdk").warning("x")
    logging.getLogger("slack_bolt").info("x")
    assert len(logs.records()) == count


def test_for_people_there_is_plain_text(logs):
    logs.configure(style="console")
    structlog.get_logger("bot.x").info("answered", name=SECRET)
    assert "answered" in logs.text()
    assert not logs.text().startswith("{")


class Unprintable:
    def __str__(self) -> str:
        raise ValueError(SECRET)


def test_a_log_entry_that_cannot_be_printed_reveals_no_secret(logs, capsys):
    logging.getLogger("library").warning("%s and %s", Unprintable(), SECRET)
    assert SECRET not in logs.text()
    assert capsys.readouterr().err == ""


def test_words_of_others_stay_on_their_line_of_the_console(logs):
    logs.configure(style="console")
    structlog.get_logger("bot.x").info("answered", reason="a\nb\x1b[31mc\u202ed")
    assert "a\\nb\\x1b[31mc\\u202ed" in logs.text()


@given(
    secret=st.text(st.characters(exclude_categories=["Cs"]), min_size=SHORTEST, max_size=30),
    before=st.text(max_size=10),
    after=st.text(max_size=10),
)
def test_a_secret_and_its_escaped_form_never_stay(secret: str, before: str, after: str) -> None:
    redactor = Redactor([secret])
    for form in (secret, quote_plus(secret)):
        cleaned = redactor.clean(before + form + after)
        assert form not in cleaned.replace("[secret]", "\n\n\n\n") or form in "[secret]"


def test_the_longest_secret_is_replaced_first() -> None:
    redactor = Redactor(["token", "token-and-more"])
    assert redactor.clean("x token-and-more y") == "x [secret] y"


def test_the_pair_of_http_basic_is_hidden_too() -> None:
    redactor = Redactor()
    redactor.add("hunter22", basic_user="apikey")
    pair = base64.b64encode(b"apikey:hunter22").decode()
    assert redactor.clean(f"Basic {pair}") == "Basic [secret]"


def test_a_short_secret_is_not_replaced() -> None:
    assert Redactor(["a", ""]).clean("a banana") == "a banana"


def test_forgetting_one_secret_leaves_the_others_hidden() -> None:
    redactor = Redactor(["first-secret", "second-secret"])
    redactor.forget("first-secret")
    redactor.forget("never-known")
    assert redactor.clean("first-secret second-secret") == "first-secret [secret]"


def test_repr_of_the_redactor_shows_no_secret() -> None:
    assert "hunter22" not in repr(Redactor(["hunter22"]))
