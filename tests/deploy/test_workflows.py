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


def run(program: str, *arguments: str | Path) -> None:
    """Run a development tool, and show its output if it fails."""
    command = [Path(sys.executable).with_name(program), *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workflows_follow_the_schema():
    run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)
    run("check-jsonschema", "--builtin-schema", "vendor.dependabot", ".github/dependabot.yml")


def test_workflows_have_no_known_weakness():
    run("zizmor", "--offline", "--no-progress", *WORKFLOWS)


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
