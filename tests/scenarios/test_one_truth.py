"""What overlaps or has changed in the meantime is said, and is never applied twice."""

import asyncio
import json
import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from bot.approvals.rules import Act, State
from bot.errors import Conflict
from bot.flows.tables import flow_lists
from bot.services.errors import ServiceFailed, ServiceTimeout
from bot.store.engine import Database
from bot.testusers import store
from bot.testusers.rules.people import Over
from bot.testusers.work import Work
from sandbox.services.faults import Fault, FaultKind
from sandbox.slack.messages import interactive
from tests.support.testusers import WELCOME, FakeFlowService, default_policy, wanted
from tests.support.testusers import World as Workflows
from tests.support.world import ABEL, ADA, ADAM, OTTO, VERA, empty_world, running_world

ALSO_OPEN = "Other open requests for the same people"
NOTHING = "There's nothing to change"
HOUR = 3600


@pytest.fixture
def process(database, clock) -> Workflows:
    return Workflows(database, clock)


def spoken(blocks) -> list[str]:
    """Return the name of each button, as a screen reader reads it."""
    buttons = [element for _, element in interactive(blocks) if element["type"] == "button"]
    return [one.get("accessibility_label") or one["text"]["text"] for one in buttons]


def same_names(blocks) -> list[str]:
    return [name for name, number in Counter(spoken(blocks)).items() if number > 1]


@pytest.mark.parametrize("kind", ["add", "remove"])
@pytest.mark.parametrize("way", ["command", "now", "form", "message"])
async def test_the_opposite_of_an_open_request_names_it(world, kind, way):
    opposite = "remove" if kind == "add" else "add"
    if kind == "remove":
        world.flow.identities[:] = ["+15550151"]
    await world.asked(f"{kind} welcome +15550151")
    text = f"{opposite} welcome +15550151"
    if way == "command":
        answer = await world.ask(ABEL, "/testusers", text)
    elif way == "now":
        answer = await world.ask(ADAM, "/testusers", f"{text} now because stolen phone")
    elif way == "message":
        dm = world.slack.workspace.dm
        before = len(dm(ABEL)) + 1
        await world.slack.direct_message(ABEL, f"testusers {text}")
        (answer,) = await world.slack.until(lambda: dm(ABEL)[before:])
    else:
        view = await world.opened_form()
        await world.slack.suggest(OTTO, view, "Flow", "wel")
        inputs = {"Flow": "welcome", "Identities": "+15550151", "Change": opposite.capitalize()}
        before = len(world.slack.workspace.ephemerals(OTTO))
        await world.slack.submit(OTTO, view, inputs)
        answer = await world.answer(OTTO, after=before)
    for words in (NOTHING, ALSO_OPEN, f"{kind} `+15550151`", "by Otto Operator"):
        assert words in answer.all_text


async def test_the_same_request_is_not_made_again_while_it_is_being_applied(world):
    card = await world.asked("add welcome +15550100 for 2h")
    hold = world.services.state.faults.add(Fault(FaultKind.HOLD, "flow", method="POST"))
    await world.click(ADA, card, "Approve")
    await hold.reached()
    answer = await world.ask(OTTO, "/testusers", "add welcome +15550100 for 2h")
    assert "You already asked for this" in answer.all_text
    assert "it's being applied: add `+15550100`" in answer.all_text
    hold.lift()
    await world.shows(card, "*Applied*")
    assert world.cards() == [card]


async def test_the_same_request_in_another_spelling_is_not_made_again(world):
    card = await world.asked(f"add welcome {SPELLINGS[0]} for 2h")
    answer = await world.ask(OTTO, "/testusers", f"add welcome {SPELLINGS[1]} for 120m")
    assert "You already asked for this" in answer.all_text
    assert f"add `{SPELLINGS[0]}` to *welcome*" in answer.all_text
    assert world.cards() == [card]


async def test_of_two_equal_requests_the_one_that_made_the_change_keeps_it(world):
    first = await world.asked("add welcome +15550100")
    second = await world.asked("add welcome +15550100", by=ADA)
    await world.approve(first, "*Applied*")
    # The other card says so before anybody decides.
    await world.shows(second, "Already on the list", "\n1 test user · this request expires")
    assert second.buttons == ["Approve", "Deny", "Cancel"]
    await world.approve(second, "*Applied*", "Already on the list", by=ABEL)
    assert first.buttons == ["Undo"]
    assert second.buttons == []
    assert "Replaced" not in first.all_text
    listed = await world.ask(OTTO, "/testusers", "list welcome")
    assert "requested by Otto Operator, approved by Ada" in listed.all_text
    await world.click(OTTO, first, "Undo")
    await world.approve(await world.card(2), "*Applied*")
    assert world.flow.identities == []


@pytest.mark.parametrize("method", ["users.info", "usergroups.users.list"])
async def test_what_slack_said_a_moment_ago_counts_while_it_is_away(world, method):
    card = await world.asked("add welcome +15550142")
    world.slack.workspace.faults.html(method, times=None)
    await world.approve(card, "*Applied*")
    assert world.flow.identities == ["+15550142"]


@pytest.mark.parametrize("button", ["Approve", "Retry"])
@pytest.mark.parametrize("how", ["deactivated", "role"])
async def test_who_may_no_longer_ask_gets_nothing(sqlite_url, button, how):
    settings = {"roles": json.dumps({"operator": ["S0APPROVERS", OTTO], "approver": [ADA, ABEL]})}
    if how == "role":
        settings["roles"] = json.dumps({"operator": ["S0APPROVERS"], "approver": [ADA, "U0ADMIN"]})
    async with empty_world(sqlite_url, inventory_watch="off", **settings) as world:
        workspace = world.slack.workspace
        asker = OTTO if how == "deactivated" else ABEL
        card = await world.asked("add welcome +15550100", by=asker)
        if button == "Retry":
            fault = Fault(FaultKind.STATUS, "flow", method="POST", status=400)
            fault = world.services.state.faults.add(fault)
            await world.approve(card, "Failed")
            fault.lift()
        if how == "deactivated":
            workspace.people[OTTO].deleted = True
        else:
            workspace.groups["S0APPROVERS"] = replace(workspace.groups["S0APPROVERS"], members=())
        world.clock.ahead += timedelta(minutes=6)
        answer = await world.click(ADA, card, button)
        assert "may no longer ask for changes to this flow" in answer.all_text
        await world.shows(card, "Cancelled", "may no longer ask for changes to this flow")
        assert world.flow.identities == []


async def test_each_post_is_on_record_before_it_is_sent(process):
    process.service.lost_answers = [ServiceTimeout("flow", "No answer.")]
    request = await process.approved("add welcome +1")
    await process.work()
    process.service.lists[WELCOME] = []
    await process.look(200)
    assert (await process.stored(request)).state is State.APPLIED
    actions = [action for _, action in await process.audited()]
    assert actions.count("flow.sent") == len(process.service.posts) == 2


async def test_access_ends_within_a_minute_of_the_end_of_an_outage(process):
    await process.applied("add welcome +1 for 2h")
    await process.pass_time(1.5 * HOUR)
    down = ServiceFailed("flow", "Down.", status=503)
    process.service.read_faults = [down] * 10_000
    for _ in range(HOUR // 20):
        await process.pass_time(20)
    process.service.read_faults = []
    for _ in range(6):
        await process.pass_time(10)
    assert process.service.lists[WELCOME] == []


async def test_an_ended_access_says_that_its_extension_waits(world):
    card = await world.applied("add welcome +1 for 1m")
    await world.asked("add welcome +1 for 2h")
    await world.later(timedelta(minutes=2))
    await world.shows(card, "Access ended")
    await world.told(OTTO, "has ended for `+1`")
    (message,) = [one for one in world.slack.workspace.dm(OTTO) if "has ended" in one.all_text]
    assert ALSO_OPEN in message.all_text


async def test_history_offers_retry_after_the_card_is_gone(world):
    card = await world.asked("add welcome +1")
    fault = world.services.state.faults.add(Fault(FaultKind.STATUS, "flow", method="POST"))
    await world.approve(card, "Failed")
    fault.lift()
    for user in (OTTO, VERA):
        assert (await world.ask(user, "/testusers", "history welcome")).buttons == []
    listed = await world.ask(ABEL, "/testusers", "history welcome")
    assert listed.buttons == ["Retry"]
    await world.click(ABEL, listed, "Retry")
    await world.shows(card, "*Applied*")


@pytest.mark.parametrize("act", [Act.APPROVE, Act.RETRY])
async def test_a_click_whose_commit_was_in_doubt_is_no_refusal(process, act):
    process.service.post_faults = [ServiceFailed("flow", "Down.", status=500)] * 3
    if act is Act.APPROVE:
        process.service.post_faults = []
    request = await process.ask("add welcome +1")
    await process.decide(Act.APPROVE, request)
    if act is Act.RETRY:
        await process.look(120)
        await process.decide(Act.RETRY, request)
    for _ in range(2):
        again = await process.decide(act, request)
        assert again.state in {State.APPLYING, State.APPLIED}
        await process.work()
    assert "request.refused" not in [action for _, action in await process.audited()]


async def test_a_first_approval_that_is_repeated_is_no_refusal(database, clock):
    process = Workflows(database, clock, policy=default_policy(approvals_needed=2))
    request = await process.ask("add welcome +1")
    await process.decide(Act.APPROVE, request)
    with pytest.raises(Conflict, match="already approved this request"):
        await process.decide(Act.APPROVE, request)
    actions = [action for _, action in await process.audited()]
    assert actions == ["request.created", "request.approved"]


SPELLINGS = ("Bob@Example.com", "bob@example.com")


async def test_one_person_in_two_spellings_is_asked_about_in_a_request_and_a_preset(world):
    for typed in (f"add welcome {' '.join(SPELLINGS)}", f"preset save team {' '.join(SPELLINGS)}"):
        answer = await world.ask(OTTO, "/testusers", typed)
        assert "are two spellings of one person" in answer.all_text
    assert world.cards() == []


async def test_two_spellings_that_look_the_same_are_told_apart(world):
    answer = await world.ask(OTTO, "/testusers", 'add welcome chat:ada "chat:\u2060ada"')
    assert "“chat:ada” and “chat:⟨U+2060⟩ada” are two spellings" in answer.all_text


async def test_open_requests_for_two_spellings_name_each_other(world):
    first = await world.asked(f"add welcome {SPELLINGS[0]}")
    second = await world.asked(f"add welcome {SPELLINGS[1]}", by=ADA)
    for card, other in ((second, SPELLINGS[0]), (first, SPELLINGS[1])):
        await world.shows(card, ALSO_OPEN, other)
    await world.approve(first, "*Applied*")
    await world.shows(second, "Already on the list")
    await world.approve(second, "*Applied*", by=ABEL)
    assert world.flow.identities == [SPELLINGS[0]]
    assert first.buttons == ["Undo"]


async def test_a_removal_takes_every_spelling_and_its_card_names_each(world):
    world.flow.identities[:] = [*SPELLINGS, "ada@example.com"]
    card = await world.asked("remove welcome BOB@example.com")
    for spelling in SPELLINGS:
        assert f"`{spelling}`" in card.all_text
    await world.approve(card, "*Applied*")
    assert world.flow.identities == ["ada@example.com"]
    await world.click(OTTO, card, "Undo")
    await world.approve(await world.card(1), "*Applied*")
    assert sorted(world.flow.identities) == sorted(["ada@example.com", *SPELLINGS])


@pytest.mark.parametrize(
    "text", ["add welcome bob@example.com for 2h", "remove welcome bob@example.com"]
)
async def test_undo_and_its_undo_change_each_spelling_once(process, text):
    process.service.lists[WELCOME] = [*SPELLINGS]
    request = await process.applied(text)
    for _ in range(3):
        request = await process.undo(request)
        assert sorted(wanted(request).identities) == sorted(SPELLINGS)
        await process.decide(Act.APPROVE, request)
        await process.work()
        assert (await process.stored(request)).state is State.APPLIED


async def test_another_spelling_extends_access(world):
    first = await world.applied(f"add welcome {SPELLINGS[0]} for 2h")
    second = await world.asked(f"add welcome {SPELLINGS[1]} for 5h")
    assert "keep" in second.all_text.lower()
    assert "currently until" in second.all_text
    await world.approve(second, "*Applied*")
    assert world.flow.identities == [SPELLINGS[0]]
    await world.shows(first, "Replaced by a later request")
    assert first.buttons == []
    await world.later(timedelta(hours=6))
    await world.shows(second, "Access ended")
    assert world.flow.identities == []


async def test_an_undone_request_still_names_whose_access_a_later_one_keeps(world):
    first = await world.applied("add welcome +1 +2 for 2h")
    await world.applied("add welcome +1 for 5h")
    await world.click(OTTO, first, "Undo")
    await world.approve(await world.card(2), "*Applied*")
    assert world.flow.identities == ["+1"]
    await world.shows(first, "*Undone*")
    assert "*Replaced by a later request:* `+1`" in first.all_text


async def test_a_card_read_aloud_names_everybody_and_the_reason(world):
    people = [f"+1555010{number}" for number in range(9)]
    card = await world.asked(f"add welcome {' '.join(people)} for 2h because OPS-7")
    for words in (*people, "OPS-7", "for 2 h", "0 → 9", "expires", "Approvers"):
        assert words in card.text


SECRET = "because phone 555-0150"


async def test_a_viewer_reads_no_reason_anywhere(world):
    await world.applied(f"add welcome b.b@example.com +15550150 {SECRET}")
    denied = await world.asked(f"add welcome +15550151 {SECRET}")
    await world.slack.click(ADA, denied, "Deny")
    await world.slack.submit(ADA, await world.form(ADA), {"Reason": "never 555-0150"})
    await world.shows(denied, "Denied")
    await world.asked(f"remove welcome +15550150 {SECRET}")
    for words in ("history welcome", "requests", "mine", "list welcome"):
        answer = await world.ask(VERA, "/testusers", words)
        assert "555-0150" not in answer.all_text
        assert "+1555" not in answer.all_text
        assert "b.b@" not in answer.all_text
    assert "b…@example.com" in (await world.ask(VERA, "/testusers", "list welcome")).all_text
    assert "only for the part" in (await world.ask(VERA, "/testusers", "list welcome zz")).all_text
    listed = await world.ask(OTTO, "/testusers", "list welcome")
    before = len(world.slack.workspace.messages("C0GENERAL"))
    await world.slack.click(OTTO, listed, "Share in channel")
    shared = await world.slack.until(lambda: world.slack.workspace.messages("C0GENERAL")[before:])
    # A time can contain the same digits.
    said = re.sub("<!date[^>]*>", "", shared[-1].all_text)
    assert "555" not in said.replace("…0150", "")


async def test_no_two_buttons_of_a_message_have_one_spoken_name(world):
    long = ["x:" + "long" * 30 + f"{number}" for number in range(3)]
    world.flow.identities[:] = ["+15550100", "+15550101", *long]
    review = await world.ask(ADA, "/testusers", "review")
    assert "Remove +15550100 on welcome" in spoken(review.blocks)
    await world.asked("add welcome +15550110 for 1h")
    for _ in range(2):
        await world.asked(f"add welcome x:{'long' * 20}{_} for 1h")
    applied = await world.asked("add welcome +15550112 +15550113 for 2h")
    await world.approve(applied, "*Applied*")
    applied = await world.asked("add welcome +15550114 for 3h")
    await world.approve(applied, "*Applied*")
    pages = ("review", "requests", "mine", "history welcome", "list welcome")
    asked = [(user, "/testusers", page) for page in pages for user in (OTTO, ADA)]
    asked += [(ADA, "/orgs", ""), (ADA, "/ratelimits", ""), (ADA, "/gatehouse", "status")]
    answers = [await world.ask(*one) for one in asked]
    answers += world.cards()
    for answer in answers:
        assert same_names(answer.blocks) == [], answer.text
    for user in (OTTO, ADA):
        await world.slack.open_home(user)
        view = await world.slack.until(lambda who=user: world.slack.workspace.homes.get(who))
        await world.shows(view, "Your requests")
        assert same_names(view.blocks) == []


async def test_undo_of_an_extension_restores_the_earlier_end(process):
    first = await process.applied("add welcome +1 for 2h")
    end = (await process.stored(first)).people[0].ends_at
    later = await process.applied("add welcome +1 for 5h")
    undo = await process.undo(later)
    await process.decide(Act.APPROVE, undo)
    await process.work()
    async with process.database.read_only() as tx:
        access = await store.access_in(tx, WELCOME)
    assert access["+1"].ends_at == end
    assert (await process.stored(later)).undo is State.APPLIED
    await process.pass_time(2 * HOUR)
    assert process.service.lists[WELCOME] == []


async def test_undo_of_a_removal_adds_until_the_earlier_end(process):
    await process.applied("add welcome +1 for 5h")
    removal = await process.applied("remove welcome +1")
    undo = await process.undo(removal)
    await process.decide(Act.APPROVE, undo)
    await process.work()
    assert process.service.lists[WELCOME] == ["+1"]
    await process.pass_time(5 * HOUR)
    assert process.service.lists[WELCOME] == []


async def test_undo_of_a_removal_is_gone_for_who_was_added_again(process):
    process.service.lists[WELCOME] = ["+1", "+2"]
    removal = await process.applied("remove welcome +1 +2")
    await process.applied("add welcome +1")
    undo = await process.undo(removal)
    assert wanted(undo).identities == ("+2",)
    await process.decide(Act.DENY, undo)
    await process.applied("add welcome +2")
    assert not (await process.stored(removal)).can_be_undone
    with pytest.raises(Conflict, match="isn't in effect"):
        await process.undo(removal)


@pytest.mark.postgres
async def test_undo_twice_at_once_is_one_request(postgres_url, clock):
    first, second = Database(postgres_url, clock), Database(postgres_url, clock)
    service = FakeFlowService()
    one, two = Workflows(first, clock, service), Workflows(second, clock, service, owner="two")
    request = await one.applied("add welcome +1")
    asked = await asyncio.gather(
        one.undo(request),
        two.undo(request, "U0ADA"),
        one.undo(request, "U0ABEL"),
        return_exceptions=True,
    )
    assert [type(one) for one in asked].count(Conflict) == 2
    await first.close()
    await second.close()


@pytest.mark.postgres
async def test_a_request_is_loaded_as_it_is_after_waiting_for_its_lock(postgres_url, clock):
    database = Database(postgres_url, clock)
    process = Workflows(database, clock)
    request = await process.applied("add welcome +1")

    async def load():
        async with database.transaction() as tx:
            found, *_ = await store.and_related(tx, request.id, is_locked=True)
            return found.version, found.people[0].over

    async with database.transaction() as tx:
        stored, *_ = await store.and_related(tx, request.id, is_locked=True)
        work = Work(process, tx, await tx.now(), [stored])
        ended = replace(stored.people[0], over=Over.ENDED, over_at=work.at)
        work.put(replace(stored, people=(ended,)))
        await work.write()
        loading = asyncio.create_task(load())
        waits = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while not await tx.connection.scalar(waits):
            pass
    assert await loading == (stored.version + 1, Over.ENDED)
    await database.close()


@pytest.mark.parametrize("removal_first", [True, False])
async def test_a_removal_and_an_addition_of_one_person_are_both_made(process, removal_first):
    process.service.lists[WELCOME] = ["+1"]
    first = await process.ask("remove welcome +1")
    if removal_first:
        await process.decide(Act.APPROVE, first)
    else:
        await process.applied("remove welcome +1")
        first = await process.ask("add welcome +1 for 2h")
        await process.decide(Act.APPROVE, first)
        await process.work()
        assert process.service.lists[WELCOME] == ["+1"]
        return
    again = await process.ask("add welcome +1 for 2h")
    await process.decide(Act.APPROVE, again)
    await process.look(120)
    assert (await process.stored(first)).state is State.APPLIED
    states = {(await process.stored(again)).state}
    assert states <= {State.APPLIED, State.PENDING}


async def test_requests_for_overlapping_people_are_applied_together(process):
    one = await process.ask("add welcome +1 +2")
    two = await process.ask("add welcome +2 +3")
    await process.decide(Act.APPROVE, one)
    process.clock.advance(1)
    await process.decide(Act.APPROVE, two)
    await process.look(60)
    assert sorted(process.service.lists[WELCOME]) == ["+1", "+2", "+3"]
    stored = [await process.stored(request) for request in (one, two)]
    assert [request.state for request in stored] == [State.APPLIED] * 2
    undo = await process.undo(two)
    assert wanted(undo).removals == ("+3",)


async def test_who_has_access_no_more_is_not_extended(world):
    await world.applied("add welcome +1 +2 for 2h")
    mine = await world.ask(OTTO, "/testusers", "mine")
    await world.applied("remove welcome +2")
    await world.slack.click(OTTO, mine, "Extend")
    view = await world.form()
    assert "+1" in json.dumps(view.blocks)
    assert "+2" not in json.dumps(view.blocks)
    await world.applied("remove welcome +1")
    answer = await world.click(OTTO, mine, "Extend")
    assert "Nobody has this access anymore" in answer.all_text


async def test_who_is_spelled_in_another_way_by_now_is_extended(world):
    await world.applied(f"add welcome {SPELLINGS[0]} +1 for 2h")
    mine = await world.ask(OTTO, "/testusers", "mine")
    world.flow.identities[:] = [SPELLINGS[1], "+1"]
    await world.later(timedelta(minutes=2))
    await world.ask(OTTO, "/testusers", "list welcome")
    card = world.cards()[0]
    await world.shows(card, "The service stores this as", SPELLINGS[1])
    await world.slack.click(OTTO, mine, "Extend")
    view = await world.form()
    assert f"{SPELLINGS[1]}\\n+1" in json.dumps(view.blocks)


async def test_a_restart_without_a_change_updates_no_card(sqlite_url):
    async with empty_world(sqlite_url) as world:
        for number in range(5):
            await world.asked(f"add welcome +1555010{number} for 2h")
    async with running_world(sqlite_url) as world:
        await world.later(timedelta(seconds=30))
        assert world.slack.workspace.calls_of("chat.update") == []
        assert world.slack.workspace.calls_of("chat.postMessage") == []


async def test_lists_are_forgotten(process):
    for number in range(9):
        await process.applied(f"add welcome +{number}")
        await process.pass_time(120)
    async with process.database.read_only() as tx:
        rows = (await tx.connection.execute(flow_lists.select())).all()
    assert len(rows) < 4


async def test_a_request_is_kept_while_somebody_has_access_by_it(process):
    request = await process.applied("add welcome +1")
    denied = await process.ask("add welcome +2")
    await process.decide(Act.DENY, denied, reason="no")
    await process.work()
    await process.pass_time(2 * HOUR)
    async with process.database.transaction() as tx:
        await store.forget_requests(tx, await tx.now())
    async with process.database.read_only() as tx:
        assert await store.load_request(tx, denied.id) is None
        assert await store.load_request(tx, request.id) is not None


@pytest.mark.parametrize("auto", [[OTTO], [ADA]])
async def test_retry_keeps_the_approval_of_a_rule_that_names_the_requester(sqlite_url, auto):
    def settings(people):
        rule = {"from": people, "longest": "4h", "a_day": 5}
        policy = {"approvals_needed": 2, "auto": rule}
        return {"inventory_watch": "off", "flow_policies": json.dumps({"welcome": policy})}

    async with empty_world(sqlite_url, **settings([OTTO])) as world:
        fault = Fault(FaultKind.STATUS, "flow", method="POST", status=403)
        world.services.state.faults.add(fault)
        await world.asked("add welcome +1 for 2h")
        await world.shows(await world.card(), "Failed")
    async with empty_world(sqlite_url, **settings(auto)) as world:
        listed = await world.ask(ADA, "/testusers", "history welcome")
        answer = await world.click(ADA, listed, "Retry")
        if auto == [ADA]:
            assert "This now needs approval by 2 people." in answer.all_text
        else:
            assert "Trying again" in answer.all_text
            await world.told(OTTO, "*Applied*")
            listed = await world.ask(OTTO, "/testusers", "list welcome")
            assert "approved by an automatic rule" in listed.all_text
