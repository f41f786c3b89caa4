"""The settings file: the environment wins, and a line that cannot be read ends the start."""

import re
from pathlib import Path

import pytest

from bot.settings import EXAMPLES, SettingsError
from bot.settings.env_file import load_env_file


def loaded(path: Path, content: str | bytes, **environment: str) -> dict[str, str]:
    """Return what the environment has after a file of that content was read."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    environment["GATEHOUSE_ENV_FILE"] = str(path)
    load_env_file(environment)
    del environment["GATEHOUSE_ENV_FILE"]
    return environment


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "gatehouse.env"


def test_environment_wins_over_the_file(path):
    assert loaded(path, "A=file\nB=file\n", A="set", C="set") == {
        "A": "set",
        "B": "file",
        "C": "set",
    }


def test_environment_without_a_file_stays_as_it_is():
    environment = {"PORT": "3001"}
    load_env_file(environment)
    assert environment == {"PORT": "3001"}


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=2", "2"),
        ("export A=2", "2"),
        ("  A = 2 ", "2"),
        ("A=", ""),
        ("A= # nothing", ""),
        ("A=2 # two people", "2"),
        ("A=a#b$c\\d", "a#b$c\\d"),
        ("A=Bearer {token}", "Bearer {token}"),
        ('A={"x": ["*"]}', '{"x": ["*"]}'),
        ("A='a # \\ \" $b'", 'a # \\ " $b'),
        ("A='x' # from Install App", "x"),
        ('A="{\\"x\\": \\"\\\\\\"}"', '{"x": "\\"}'),
        ('A="it\'s"\t# x', "it's"),
        ("A=2\r", "2"),
        ("\ufeffA=2", "2"),
    ],
)
def test_line_is_read(path, line, value):
    assert loaded(path, f"{line}\n") == {"A": value}


@pytest.mark.parametrize(
    "line",
    ["A='2'x", "A='2", 'A="2', "A='a'b", "A='a'#b", "A='a' b", 'A="a\\nb"', "A", "A B=2", "2=A",
     "export", "=2", "A=a\0b", "A='a''b'"],
)  # fmt: skip
def test_unreadable_line_is_named_by_its_number_only(path, line):
    with pytest.raises(SettingsError) as caught:
        loaded(path, f"# Slack\nB=secret-word\n{line}\nC='x'\n")
    assert caught.value.problems == [
        f"GATEHOUSE_ENV_FILE {path}, line 3: can't be read; write NAME='value' on one line"
    ]


def test_name_that_is_set_twice_is_refused(path):
    with pytest.raises(SettingsError) as caught:
        loaded(path, "A=1\n#A=2\nexport A=3\n")
    assert caught.value.problems == [f"GATEHOUSE_ENV_FILE {path}, line 3: sets A a second time"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read: No such file or directory"), (b"\xff\xfe", "it is not UTF-8 text")],
)
def test_file_that_cannot_be_read_is_named(path, content, said):
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load_env_file({"GATEHOUSE_ENV_FILE": str(path)})
    assert said in caught.value.problems[0]
    assert str(path) in caught.value.problems[0]


def test_file_that_everybody_can_write_is_refused(path):
    path.touch()
    path.chmod(0o666)
    with pytest.raises(SettingsError, match="is writable by every user"):
        load_env_file({"GATEHOUSE_ENV_FILE": str(path)})


def test_example_file_has_every_setting_with_its_example(path):
    example = Path(__file__).parents[2] / "env.example"
    settings = re.sub(r"(?m)^#([A-Z_]+=)", r"\1", example.read_text(encoding="utf-8"))
    assert loaded(path, settings) == dict(EXAMPLES)
