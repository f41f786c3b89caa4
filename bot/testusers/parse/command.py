"""`/testusers`: turn text into a typed request, or a usage error with a correct example."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bot.approvals.parse import spell_duration, spell_when
from bot.commands import FORM, HELP, TESTUSERS
from bot.errors import Meant, UsageError
from bot.slack.parse import (
    Word,
    asks_for_help,
    escaped,
    read_words,
    refuse_endless,
    unknown,
)
from bot.spelling import closest, folded
from bot.testusers.parse.change import (
    KEYWORDS,
    PRESET,
    ChangeRequest,
    is_identity,
    misuse,
    parse_change,
    people,
    quoted,
)

FLOWS_OFFERED = 5
PRESET_ACTIONS = ("save", "delete")


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A parsed subcommand other than `add` and `remove`; `form` is its name in `bot/commands.py`.

    `text` is the text to search a list for, or the name of a preset with these `identities`.
    """

    form: str
    flow: str = ""
    text: str = ""
    identities: tuple[str, ...] = ()


TestusersRequest = ChangeRequest | Subcommand


def parse_testusers(text: str, aliases: Collection[str] = ()) -> TestusersRequest:
    """Parse the text of a `/testusers` command; `aliases` are the short names of flows.

    Raises:
        UsageError: The text can't be parsed. All commands that the error suggests can be.
    """

    def is_understood(meant: Meant) -> bool:
        try:
            return bool(_parse(meant.words, aliases))
        except UsageError:
            return False

    try:
        return _parse(text, aliases)
    except UsageError as error:
        error.meant = tuple(filter(is_understood, error.meant))
        raise


def _parse(text: str, aliases: Collection[str]) -> TestusersRequest:
    refuse_endless(text, TESTUSERS, "add")
    words = [word for word in read_words(text, commas=True) if not word.is_dash]
    if not words:
        return Subcommand(FORM)
    if asks_for_help(words[:1]):
        return Subcommand(HELP)
    action, rest = words[0].keyword, words[1:]
    match action:
        case "add" | "remove":
            return parse_change(action, rest, text)
        case "list" | "history":
            if not rest:
                flows = sorted(aliases)[:FLOWS_OFFERED]
                meant = [Meant(text.strip(), f"{action} {flow}", flow) for flow in flows]
                raise misuse(action, "Which flow?", has_right_form=bool(flows)).or_rather(*meant)
            if action == "history" and rest[1:]:
                raise misuse(action, f"Unexpected word: “{rest[1].text[:80]}”.")
            return Subcommand(action, rest[0].text, " ".join(word.text for word in rest[1:]))
        case "preset" | "presets" if action == "preset" or (
            rest and rest[0].keyword in PRESET_ACTIONS
        ):
            return _parse_preset(rest, text)
        case "requests" | "mine" | "presets":
            if rest:
                raise misuse(action, f"Use /testusers {action} alone, with nothing after it.")
            return Subcommand(action)
    raise unknown(TESTUSERS, words)


def _parse_preset(words: Sequence[Word], text: str) -> Subcommand:
    place = words[0] if words else None
    if place is None or place.keyword not in PRESET_ACTIONS:
        meant = [
            Meant(text.strip(), f"{text[: place.start]}{action}{text[place.end :]}".strip())
            for action in closest(place.keyword if place else "", PRESET_ACTIONS)
            if place
        ]
        raise misuse("save_preset", "Choose “preset save” or “preset delete”.").or_rather(*meant)
    if len(words) == 1:
        raise misuse("save_preset", "Which preset? Give it a name, e.g. demo-team.")
    name, more = folded(words[1].text).removeprefix("@"), words[2:]
    if words[1].keyword in KEYWORDS:
        problem = f"“{name}” can't be a preset, because “add” uses it as a keyword."
        raise misuse("save_preset", problem)
    if not PRESET.fullmatch(f"@{name}"):
        problem = "Use up to 40 characters: a to z, digits, dots and dashes, e.g. demo-team."
        raise misuse("save_preset", problem)
    if words[0].keyword == "delete":
        if more:
            raise misuse("save_preset", f"Unexpected word: “{more[0].text[:80]}”.")
        return Subcommand("delete_preset", text=name)
    if taken := next((word for word in more if word.keyword in KEYWORDS), None):
        raise misuse(
            "save_preset",
            f"“{taken.keyword}” only works with “add”. A preset is only a list of people."
            f" If “{taken.text}” is a test user, put it in quotes.",
        )
    return Subcommand("save_preset", text=name, identities=people("save_preset", more, text))


def as_command(change: ChangeRequest) -> str:
    """Return the command that makes the same request, or "" if it can't be typed."""
    options = (
        *(f"@{name}" for name in change.presets),
        f"for {spell_duration(change.duration_seconds)}" if change.duration_seconds else "",
        f"from {spell_when(change.start)}" if change.start else "",
        f"until {spell_when(change.until)}" if change.until else "",
        "now" if change.now else "",
        f"because {change.reason}" if change.reason else "",
    )
    plain = [word if is_identity(word) else quoted(word) for word in change.identities]
    exact = [quoted(word) for word in change.identities]
    for flow, named in ((change.flow, plain), (quoted(change.flow), plain), (change.flow, exact)):
        text = " ".join(filter(None, (change.kind, flow, *named, *options)))
        try:
            if _parse(escaped(text), ()) == change:
                return f"{TESTUSERS.name} {text}"
        except UsageError:
            continue
    return ""
