"""Writes settings in TOML, with a comment on each: for `gatehouse setup` and error messages."""

import json
import re
from collections.abc import Mapping

import tomli_w
from pydantic import SecretStr

from bot.settings.model import Settings

HEADER = (
    "# Gatehouse settings. docs/settings.md explains each of them. A line that begins with # is"
    " ignored.\n"
)


def example_of(name: str) -> object:
    """Return a setting's example, as in TOML. Without one, the default is the example."""
    field = Settings.model_fields[name]
    value = field.examples[0] if field.examples else field.default
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def in_environment(name: str) -> str:
    """Return an example of a setting as an environment variable."""
    return f"{name.upper()}={EXAMPLES[name.upper()]}"


def in_toml(name: str) -> str:
    """Return an example of a setting in TOML, on one line."""
    return toml_table({name: example_of(name)})


def toml_table(table: Mapping[str, object], *place: str) -> str:
    """Return a table in TOML on one line, such as `[roles] viewer = ["*"]; admin = ["U0ADAM"]`."""
    (name, inner), *others = table.items()
    if isinstance(inner, dict) and not others:
        return toml_table(inner, *place, _key(name))
    heading = f"[{'.'.join(place)}] " if place else ""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items()]
    return heading + "; ".join(lines)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_value(one)}' for key, one in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name)


def toml_text(values: Mapping[str, object]) -> str:
    """Return the content of a settings file. Tables come last, because TOML requires it."""
    names = sorted(values, key=lambda name: isinstance(values[name], dict))
    parts = [
        f"# {Settings.model_fields[name].description}\n{tomli_w.dumps({name: values[name]})}"
        for name in names
    ]
    return "\n".join([HEADER, *parts])


# By the names of the environment variables.
EXAMPLES: Mapping[str, str] = {
    name.upper(): value
    if isinstance(value := example_of(name), str)
    else json.dumps(value, ensure_ascii=False)
    for name in Settings.model_fields
}
