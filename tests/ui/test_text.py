"""Text from outside: what nobody sees is shown, and quick ways give what the slow ones would."""

import unicodedata

from bot.ui import text

TURNING_OR_UNSEEN = "\u061c\u200b\u200e\u200f\u202a\u202e\u2060\u2066\u2069\ufeff"


def test_every_control_character_and_every_unseen_one_gets_a_stand_in():
    controls = [
        character
        for character in map(chr, range(0x110000))
        if unicodedata.category(character) in {"Cc", "Cs"} and not character.isspace()
    ]
    for character in [*controls, *TURNING_OR_UNSEEN]:
        assert text.tidy(f"a{character}b") == f"a{text.VISIBLE_STAND_IN}b"


def test_no_character_before_the_hebrew_ones_is_written_from_right_to_left():
    early = map(chr, range(ord(text.FIRST_RIGHT_TO_LEFT)))
    assert not [one for one in early if unicodedata.bidirectional(one) in text.RIGHT_TO_LEFT]


def test_right_to_left_text_is_isolated_and_other_text_is_not():
    assert text.plain("نور 1") == "\u2068نور 1\u2069"
    assert text.plain("Müller 株") == "Müller 株"
