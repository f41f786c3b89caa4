"""The settings file says to its reader what was written."""

from hypothesis import given
from hypothesis import strategies as st

from bot.settings.env_file import load_env_file
from bot.setup.run import settings_text, write_settings

VALUES = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "))


@given(st.dictionaries(st.from_regex(r"[A-Z][A-Z_]{0,20}", fullmatch=True), VALUES))
def test_every_value_comes_back(tmp_path_factory, settings):
    file = tmp_path_factory.getbasetemp() / "any.env"
    write_settings(file, settings_text(settings))
    read = {"GATEHOUSE_ENV_FILE": str(file)}
    load_env_file(read)
    assert {**settings, "GATEHOUSE_ENV_FILE": str(file)} == read
