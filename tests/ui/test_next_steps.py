"""What was meant takes the place of what was typed, and of nothing else."""

import pytest

from bot.errors import Meant, NotFound
from bot.slack.messages import replies


@pytest.mark.parametrize(
    ("command", "typed", "words", "rather"),
    [
        ("/testusers list es", "es", "welcome", "/testusers list welcome"),
        ("/testusers add add +1", "add", "demo", "/testusers demo add +1"),
        ("/testusers list a1 a", "a", "qa", "/testusers list a1 qa"),
        ("/orgs show Nortwind Traders", "Nortwind Traders", "com/1", "/orgs show com/1"),
        ("/testusers list “welcom”", "welcom", "welcome", "/testusers list “welcome”"),
    ],
)
def test_only_whole_words_after_the_command_are_replaced(command, typed, words, rather):
    error = NotFound("No.").or_rather(Meant(typed, words))
    (button,) = replies.with_next_steps(replies.sorry(error), error, command).slack_blocks[-1][
        "elements"
    ]
    assert (button["value"], button["text"]["text"]) == (rather, rather)


def test_a_part_of_a_word_is_not_what_was_typed():
    error = NotFound("No.").or_rather(Meant("es", "welcome"))
    message = replies.with_next_steps(replies.sorry(error), error, "/testusers list essen")
    assert [block["type"] for block in message.slack_blocks] == ["section"]
