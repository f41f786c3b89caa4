"""Test that the workflows are valid and secure, and that CI uses the right Python versions."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def complaints(program: str, *arguments: str | Path) -> str:
    """Run a development tool. Return what it prints if it fails."""
    command = [Path(sys.executable).with_name(program), *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr + f"exit {done.returncode}"


@pytest.mark.parametrize(
    ("schema", "files"),
    [("github-workflows", WORKFLOWS), ("dependabot", [ROOT / ".github/dependabot.yml"])],
)
def test_workflows_follow_the_schema(schema, files):
    assert complaints("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files) == ""


def test_workflows_have_no_known_weakness():
    assert complaints("zizmor", "--offline", "--no-progress", *WORKFLOWS) == ""


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(workflow):
    used = re.findall(r"uses: (\S+)", workflow.read_text("utf-8"))
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)


def test_both_ends_of_the_supported_pythons_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    classifiers = " ".join(project["classifiers"])
    supported = re.findall(r"Python :: (3\.\d+)", classifiers)
    oldest, newest = supported[0], supported[-1]
    assert project["requires-python"] == f">={oldest}"
    ci = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    assert ci["jobs"]["check"]["strategy"]["matrix"]["python"] == [oldest, newest]
    for page in ("README.md", "docs/install.md"):
        text = (ROOT / page).read_text("utf-8")
        assert re.findall(r"Python (3\.\d+ to 3\.\d+)", text) == [f"{oldest} to {newest}"], page
