"""The app manifest follows Slack's rules and matches the code."""

import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from bot.commands import COMMANDS
from bot.slack.manifest import (
    EVENTS,
    PLACEHOLDER_URL,
    SCOPES,
    app_manifest,
    manifest_link,
    manifest_text,
)

ROOT = Path(__file__).parents[2]
NO_SCOPE = {
    *("auth_test", "apps_connections_open", "chat_getPermalink"),
    *("views_open", "views_update", "views_publish"),
}
# Web API methods, grouped by the bot scope that they need.
SCOPES_OF = {
    "chat_postMessage": {"chat:write"},
    "chat_update": {"chat:write"},
    "users_info": {"users:read"},
    "usergroups_list": {"usergroups:read"},
    "usergroups_users_list": {"usergroups:read"},
    "conversations_info": {"channels:read", "groups:read"},
    "conversations_open": {"im:write"},
}
SCOPES_OF_EVENT = {"app_home_opened": set(), "message.im": {"im:history"}}


def test_texts_keep_to_slacks_limits() -> None:
    manifest = app_manifest(PLACEHOLDER_URL, socket=False)
    display, features = manifest["display_information"], manifest["features"]
    assert (len(display["name"]) <= 35, len(display["description"]) <= 140) == (True, True)
    for one in features["slash_commands"]:
        assert re.fullmatch(r"/[a-z]{1,31}", one["command"])
        assert (len(one["description"]) <= 2000, len(one["usage_hint"]) <= 1000) == (True, True)
    for one in features["shortcuts"]:
        assert (len(one["name"]) <= 24, len(one["description"]) <= 150) == (True, True)


def test_home_shortcuts_and_direct_messages_are_announced() -> None:
    manifest = app_manifest(PLACEHOLDER_URL, socket=False)
    assert manifest["features"]["app_home"]["home_tab_enabled"]
    shortcuts = {item["callback_id"]: item["type"] for item in manifest["features"]["shortcuts"]}
    assert shortcuts == {"change_test_users": "global"}
    events = manifest["settings"]["event_subscriptions"]["bot_events"]
    assert events == ["app_home_opened", "message.im"]
    assert not manifest["settings"]["org_deploy_enabled"]


def test_the_file_in_the_repository_is_the_same_text() -> None:
    text = (ROOT / "manifest.yml").read_text(encoding="utf-8")
    assert text == manifest_text(PLACEHOLDER_URL, socket=False)
    assert yaml.safe_load(text) == app_manifest(PLACEHOLDER_URL, socket=False)


@pytest.mark.parametrize("end", ["", "/", "/slack/events", "/ "])
def test_every_address_is_the_one_path_of_the_bot(end: str) -> None:
    text = manifest_text(f"https://bot.example.org/behind/a/proxy{end}", socket=False)
    addresses = set(re.findall(r'https://[^\s"]+', text))
    assert addresses == {"https://bot.example.org/behind/a/proxy/slack/events"}


def test_the_link_creates_the_app_from_the_same_manifest() -> None:
    link = urlsplit(manifest_link(PLACEHOLDER_URL, socket=False))
    query = parse_qs(link.query)
    assert (link.netloc, link.path, query["new_app"]) == ("api.slack.com", "/apps", ["1"])
    assert json.loads(query["manifest_json"][0]) == app_manifest(PLACEHOLDER_URL, socket=False)
    # Some programs end a link at these characters, and some don't decode "+".
    assert not set(" +'\"<>()") & set(link.query)


def test_socket_mode_has_no_address_at_all() -> None:
    assert "http" not in manifest_text(None, socket=True)


@pytest.mark.parametrize(
    "url",
    [None, "", "bot.example.com", "http://bot.example.com", "https://", "https://u:p@x.example/"],
)
def test_an_address_that_slack_cannot_call_is_refused(url: str | None) -> None:
    with pytest.raises(
        ValueError, match=r"calls only https:// addresses.*--url https://bot\.example"
    ):
        manifest_text(url, socket=False)


def test_there_is_a_scope_for_every_method_the_bot_calls_and_no_other() -> None:
    source = (ROOT / "bot/slack/client.py").read_text(encoding="utf-8")
    methods = set(re.findall(r"_web\.([a-z]+_\w+)", source)) - NO_SCOPE - {"base_url"}
    needed = set[str]().union(*(SCOPES_OF[method] for method in methods))
    heard = set[str]().union(*(SCOPES_OF_EVENT[event] for event in EVENTS))
    assert set(SCOPES) == needed | heard | {"commands"}


def test_the_page_of_commands_names_every_command_and_no_other() -> None:
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(/[a-z]+)", page, re.MULTILINE))
    assert named == {command.name for command in COMMANDS}
