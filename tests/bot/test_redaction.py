"""No secret in any of its forms."""

import base64
from urllib.parse import quote_plus

from hypothesis import given
from hypothesis import strategies as st

from bot.ops.redaction import SHORTEST, Redactor


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


def test_the_longest_goes_first_so_that_no_end_of_it_stays() -> None:
    redactor = Redactor(["token", "token-and-more"])
    assert redactor.clean("x token-and-more y") == "x [secret] y"


def test_the_pair_of_http_basic_is_hidden_too() -> None:
    redactor = Redactor()
    redactor.add("hunter22", basic_user="apikey")
    pair = base64.b64encode(b"apikey:hunter22").decode()
    assert redactor.clean(f"Basic {pair}") == "Basic [secret]"


def test_what_is_too_short_to_be_a_secret_leaves_texts_alone() -> None:
    assert Redactor(["a", ""]).clean("a banana") == "a banana"


def test_forgetting_one_secret_leaves_the_others_hidden() -> None:
    redactor = Redactor(["first-secret", "second-secret"])
    redactor.forget("first-secret")
    redactor.forget("never-known")
    assert redactor.clean("first-secret second-secret") == "first-secret [secret]"


def test_it_prints_nothing() -> None:
    assert "hunter22" not in repr(Redactor(["hunter22"]))
