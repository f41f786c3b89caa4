"""The README's pictures are noticed when they no longer show what the bot says."""

import json

import pytest

from tests.support import pictured

SHOWS = {".png", ".webp"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a folder with the words that the bot says today."""
    folder = tmp_path_factory.mktemp("pictures")
    pictured.save_words(folder)
    return folder


def test_words_are_saved_for_each_picture(saved):
    words = json.loads((saved / pictured.WORDS).read_text("utf-8"))
    pictures = {path.name for path in pictured.PICTURES.glob("*.*") if path.suffix in SHOWS}
    assert words.keys() == {*pictures, "page"}
    assert any("wants to add `+0`, `whatsapp:+0`" in line for line in words["approval.png"])
    assert any("*Applied*, approved by Ada" in line for line in words["approval.png"])
    assert any("is blocked, because the limit of" in line for line in words["alert.png"])
    assert any("Minute: 0/0" in line for line in words["quota.png"])
    assert any("Shared by Otto Operator" in line for line in words["demo.webp"])
    assert pictured.outdated_pictures(saved) == []


def test_a_sentence_that_the_bot_no_longer_says_is_named(saved, tmp_path):
    words = json.loads((saved / pictured.WORDS).read_text("utf-8"))
    changed = json.dumps(words).replace("is blocked, because the limit", "is blocked: the limit")
    (tmp_path / pictured.WORDS).write_text(changed, "utf-8")
    (problem,) = pictured.outdated_pictures(tmp_path)
    assert "alert.png" in problem
    assert "is blocked, because the limit of" in problem


@pytest.mark.parametrize("picture", ["quota.png", "page"])
def test_more_or_other_words_are_noticed(picture):
    (problem,) = pictured.outdated({picture: ["one", "two"]}, {picture: ["one"]})
    assert "run make screenshots" in problem
    assert pictured.outdated({}, {picture: ["one"]}) != []
