"""Writes the files that are generated from the code: `make generated`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from bot.slack.manifest import PLACEHOLDER_URL, manifest_text
from tests.support.settings import example_file

ROOT = Path(__file__).parents[2]
GENERATED: Mapping[str, Callable[[], str]] = {
    "gatehouse.example.toml": example_file,
    "manifest.yml": lambda: manifest_text(PLACEHOLDER_URL, socket=False),
}


def main() -> None:
    """Write each file, completely or not at all."""
    for name, text in GENERATED.items():
        new = ROOT / f"{name}.new"
        new.write_text(text(), encoding="utf-8")
        new.replace(ROOT / name)


if __name__ == "__main__":
    main()
