"""The errors' outcomes and sentences."""

import inspect
import re
from types import ModuleType

import pytest

from bot import errors
from bot.services import errors as service_errors


def _classes(*modules: ModuleType) -> list[type[errors.GatehouseError]]:
    return [
        value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, errors.GatehouseError)
        and value.__module__ == module.__name__
    ]


def test_outcomes_are_short_stable_words_and_no_two_are_the_same() -> None:
    outcomes = [item.outcome for item in _classes(errors, service_errors)]
    assert len(set(outcomes)) == len(outcomes)
    assert all(re.fullmatch(r"[a-z_]{4,24}", outcome) for outcome in outcomes)


@pytest.mark.parametrize(
    ("wait", "told"), [(0.0, "1 s"), (0.2, "1 s"), (1.0, "2 s"), (41.3, "42 s")]
)
def test_the_wait_is_told_in_whole_seconds_never_too_short(wait: float, told: str) -> None:
    sentence = errors.TooManyCommands(wait).sentence
    assert sentence.endswith(f"in {told}.")


@pytest.mark.parametrize("name", sorted(errors.TRIGGER_GONE))
def test_a_form_that_came_too_late_is_told_in_peoples_words(name: str) -> None:
    refusal = errors.SlackRefused(name)
    assert "try again" in refusal.sentence
    assert name not in refusal.sentence
    assert refusal.error == name
