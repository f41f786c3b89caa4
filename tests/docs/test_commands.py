"""Test that the programs, subcommands, flags and files in documented commands exist.

Other tests run the commands in docs/install.md, docs/operations.md and docs/gateway.md.
"""

import argparse
import importlib.util
import re
import shlex
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from bot.__main__ import _parser as gatehouse_parser
from sandbox.__main__ import _parser as sandbox_parser

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*.md")])
LANGUAGES = {"console", "env", "json", "python", "sh", "text", "toml"}
# Placeholders that people fill in.
FILLED_IN = {"HASH": "0" * 64, "N": "7"}
# System programs. The tests that run a page run these too.
SYSTEM = {
    *("cd", "chmod", "chown", "cp", "curl", "git", "install", "mkdir", "mv", "nc", "openssl"),
    *("pg_dump", "pg_restore", "psql", "sudoedit", "tar", "umask"),
}


def can_parse(parser: argparse.ArgumentParser, words: list[str]) -> bool:
    try:
        parser.parse_args([FILLED_IN.get(word, word) for word in words])
    except SystemExit as ended:
        return ended.code == 0
    return True


def is_gatehouse(words: list[str]) -> bool:
    if words[:1] == ["sandbox"]:
        return can_parse(sandbox_parser(), words[1:])
    # In a sentence, `gatehouse policy explain` stands without the flow and the person.
    return can_parse(gatehouse_parser(), words) or words in (["policy", "explain"], ["audit"])


def is_python(words: list[str]) -> bool:
    option, name, *rest = words
    if option == "-c":
        return bool(compile(name, "docs", "exec"))
    if name == "pip":
        files = [path for flag, path in pairwise(rest) if flag == "-r"]
        return all((ROOT / file).is_file() for file in files)
    if name in {"bot", "sandbox"}:
        return is_gatehouse(rest) if name == "bot" else can_parse(sandbox_parser(), rest)
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        return name == "venv"
    source = Path(found.origin).with_name("__main__.py")
    flags = {word for word in rest if word.startswith("--")}
    return all(f'"{flag}"' in source.read_text("utf-8") for flag in flags)


def is_make(words: list[str]) -> bool:
    text = (ROOT / "Makefile").read_text("utf-8")
    return all(
        re.search(rf"\b{word.split('=')[0]} \?=|\$\({word.split('=')[0]}\)", text)
        if "=" in word
        else re.search(rf"^{word}:.* ## ", text, re.MULTILINE)
        for word in words
    )


def is_docker(words: list[str]) -> bool:
    """Return True if a `docker` command uses our image or a service in `compose.yaml`."""
    if words[0] == "run":
        return words[-1:] == ["sandbox"] or words[1:] == ["--env-file"]
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    command, *rest = words[1:]
    named = [word for word in rest if not word.startswith("-")][:1]
    return (
        words[0] == "compose"
        and command in {"up", "run", "exec", "start", "stop"}
        and (command == "up" or named[0] in services)
    )


def is_kubectl(words: list[str]) -> bool:
    """Return True if all objects and files named in a `kubectl` command exist."""
    manifests = (ROOT / "deploy/kubernetes/gatehouse.yaml").read_text("utf-8")
    names = [word.split("/")[1] for word in words if word.startswith("deployment/")]
    names += [word for word in words if word.startswith("gatehouse-")]
    return all(re.search(rf"ame: {name}\b(?!-)", manifests) for name in names) and all(
        (ROOT / word).is_file() for word in words if word.startswith("deploy/")
    )


def is_unit(words: list[str]) -> bool:
    units = {path.stem for path in (ROOT / "deploy/systemd").iterdir()}
    return words[0] == "daemon-reload" or words[-1] in units


CHECKS: dict[str, Callable[[list[str]], object]] = {
    "gatehouse": is_gatehouse,
    "python": is_python,
    "python3": is_python,
    "make": is_make,
    "docker": is_docker,
    "kubectl": is_kubectl,
    "journalctl": is_unit,
    "systemctl": is_unit,
}


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the language and content of each fenced code block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def lines(text: str) -> Iterator[str]:
    """Yield each line of the shell blocks, and each command that appears as inline code."""
    for language, block in blocks(text):
        whole = re.sub(
            r"<<'(\w+)'\n.*?^\1$", "", block.replace("\\\n", " "), flags=re.MULTILINE | re.DOTALL
        )
        if language == "sh":
            yield from whole.splitlines()
        if language == "console":
            yield from re.findall(r"(?m)^\$ (.*)$", whole)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`([^`]+)`", prose):
        if re.match(rf"(sudo |\S*bin/)?({'|'.join(CHECKS)}) ", code):
            yield code.replace("\n", " ")


def commands(text: str) -> Iterator[list[str]]:
    """Yield each command as a list of words, without any `sudo`, `env` or redirection."""
    for line in lines(text):
        for part in re.split(r" (?:&&|\|) ", line):
            shown = re.sub(r'"\$\(.*?\)"', "word", part)
            words = shlex.split(re.sub(r" [<>] ?\S+$", "", shown), comments=True)
            while words and re.match(r"sudo$|-u$|postgres$|env$|--chdir=|\w+=", words[0]):
                del words[0]
            if words:
                yield words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_command_of_a_page_can_be_typed(page: Path) -> None:
    for program, *words in commands(page.read_text("utf-8")):
        name = Path(program).name
        assert name in CHECKS or name in SYSTEM, f"{program} isn't checked"
        assert name in SYSTEM or CHECKS[name](words), shlex.join([program, *words])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_block_of_a_page_says_its_language(page: Path) -> None:
    assert {language for language, _ in blocks(page.read_text("utf-8"))} <= LANGUAGES


@pytest.mark.parametrize(
    "line",
    [
        *("gatehouse restart", "gatehouse check --fast", "python -m sandbox --prot 1"),
        *(
            "python -m tests.faults --only x",
            "python -m tests.gone",
            "make tests",
            "make run PROT=1",
        ),
        *("docker compose exec gate sh", "kubectl scale deployment/gate"),
        *("sudo systemctl stop gate", "python -m pip install -r gone.txt", "podman ps"),
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    [[program, *words]] = commands(f"```sh\n{line}\n```\n")
    assert not (program in CHECKS and CHECKS[program](words))
