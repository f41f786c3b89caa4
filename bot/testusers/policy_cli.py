"""`python -m bot policy explain <flow> <user id>`: who decides on a flow's requests, and why."""

from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import SlackError, UnknownPerson
from bot.ops.clock import SystemClock
from bot.ops.terminal import on_one_line
from bot.services.http import open_session
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.slack.people import People
from bot.testusers.explaining import explain
from bot.testusers.rules.changes import find_flow

SLACK_SECONDS = 10


async def explain_policy(settings: Settings, typed_flow: str, slack_user_id: str) -> int:
    """Print who decides and why; return 0, or 1 if the flow or the person is not known."""
    flow = find_flow(typed_flow, settings.flow_aliases)
    if flow is None:
        known = ", ".join(sorted(settings.flow_aliases)) or "none"
        print(f"There is no flow {typed_flow}. Use a SID, or an alias of FLOW_ALIASES: {known}.")
        return 1
    async with open_session() as session:
        web = AsyncWebClient(
            token=settings.slack_bot_token.get_secret_value(),
            base_url=settings.slack_api_url.rstrip("/") + "/",
            session=session,
            timeout=SLACK_SECONDS,
        )
        clock = SystemClock()
        slack = SlackClient(web, clock)
        people = People(slack, settings.policy, None, clock)
        try:
            me = await slack.who_am_i()
            people.meet(me.team_id, me.slack_user_id)
            lines = await explain(people, flow, slack_user_id, settings.approvals_needed)
        except UnknownPerson:
            print(f"Slack knows nobody with the ID {slack_user_id}.")
            return 1
        except SlackError as error:
            print(error.sentence)
            return 1
    print("\n".join(map(on_one_line, lines)))
    return 0
