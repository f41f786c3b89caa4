"""`make release-check` runs the release checks that aren't part of `make check`."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import structlog

from bot import __version__
from tests.support.pictured import outdated_pictures

ROOT = Path(__file__).parents[2]


def problems() -> list[str]:
    """Return the problems that prevent a release."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", changelog, re.MULTILINE)
    manifests = (ROOT / "deploy/kubernetes/gatehouse.yaml").read_text(encoding="utf-8")
    found = []
    if newest is None or newest[1] != __version__:
        found.append(f"CHANGELOG.md does not begin with {__version__}")
    if f"gatehouse:{__version__}" not in manifests:
        found.append(f"deploy/kubernetes does not name the image gatehouse:{__version__}")
    if _git("status", "--porcelain"):
        found.append("the tree is not clean")
    other_tags = _git("tag", "--no-contains", "HEAD").split()
    if __version__ in {tag.removeprefix("v") for tag in other_tags}:
        found.append(f"{__version__} is already the tag of another commit")
    return [*found, *outdated_pictures()]


def _git(*arguments: str) -> str:
    git = shutil.which("git") or "git"
    done = subprocess.run([git, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> int:
    """Print the problems that prevent a release. Return the exit status."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    found = problems()
    for problem in found:
        print(f"release-check: {problem}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
