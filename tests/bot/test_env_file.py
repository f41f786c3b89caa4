"""The file of further settings: the environment wins, and what is wrong with it is said."""

import re
from pathlib import Path

import pytest

from bot.settings import EXAMPLES, SettingsError
from bot.settings.env_file import with_env_file

FILE = """# Slack
SLACK_BOT_TOKEN=xoxb-1
export ROLES='{"admin": ["U1"]}'
EMAIL_API_KEY="with # and $HOME"
PORT=3000
"""


@pytest.fixture
def env_file(tmp_path):
    path = tmp_path / "gatehouse.env"
    path.write_text(FILE, encoding="utf-8")
    return path


def test_environment_wins_over_the_file(env_file):
    merged = with_env_file({"GATEHOUSE_ENV_FILE": str(env_file), "PORT": "3001"})
    assert merged["SLACK_BOT_TOKEN"] == "xoxb-1"
    assert merged["ROLES"] == '{"admin": ["U1"]}'
    assert merged["EMAIL_API_KEY"] == "with # and $HOME"
    assert merged["PORT"] == "3001"


def test_environment_without_a_file_is_as_it_is():
    assert with_env_file({"PORT": "3001"}) == {"PORT": "3001"}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff\xfe", "cannot be read: it is not UTF-8 text"),
        (b"PORT\n", "“PORT” has no value"),
    ],
)
def test_file_that_cannot_be_used_is_named(tmp_path, content, said):
    path = tmp_path / "gatehouse.env"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        with_env_file({"GATEHOUSE_ENV_FILE": str(path)})
    assert said in str(caught.value.problems)
    assert str(path) in str(caught.value.problems)


def test_example_file_has_every_setting_with_its_example(tmp_path):
    example = Path(__file__).parents[2] / "env.example"
    settings = re.sub(r"(?m)^#([A-Z_]+=)", r"\1", example.read_text(encoding="utf-8"))
    path = tmp_path / "all.env"
    path.write_text(settings, encoding="utf-8")
    values = dict(with_env_file({"GATEHOUSE_ENV_FILE": str(path)}))
    del values["GATEHOUSE_ENV_FILE"]
    assert values == dict(EXAMPLES)
