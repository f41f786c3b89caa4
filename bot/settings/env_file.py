"""The file of further settings that `GATEHOUSE_ENV_FILE` names."""

from collections.abc import Mapping

from bot.settings.problems import SettingsError

ENV_FILE = "GATEHOUSE_ENV_FILE"


def with_env_file(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the settings of its file, where it names one.

    The environment wins over the file. Values are taken as they are: nothing in them is replaced.

    Raises:
        SettingsError: The file cannot be read, or a line of it is no `NAME=value`.
    """
    path = environment.get(ENV_FILE, "").strip()
    if not path:
        return environment
    # Most have no such file, and start without what reads it.
    from dotenv import dotenv_values

    try:
        # Opened here: the library takes a file that is not there for an empty one.
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - a stream for the library
            found = dotenv_values(stream=file, interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError([_unreadable(path, error)]) from None
    unset = [name for name, value in found.items() if value is None]
    if unset:
        raise SettingsError([f"{ENV_FILE} {path}: “{unset[0]}” has no value; write NAME=value"])
    return {**{name: value or "" for name, value in found.items()}, **environment}


def _unreadable(path: str, error: OSError | UnicodeDecodeError) -> str:
    reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
    return f"{ENV_FILE} {path} cannot be read: {reason} (example: {ENV_FILE}=/etc/gatehouse/env)"
