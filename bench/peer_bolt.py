"""The peer: the smallest Bolt AsyncApp that responds to `/orgs`.

`python -m bench.peer_bolt PORT [at-once]` takes the environment of the bot. `at-once` sets
`process_before_response`, so that Bolt doesn't poll every 10 ms for the acknowledgement.
"""

import os
import sys

from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond
from slack_sdk.web.async_client import AsyncWebClient


def main() -> None:
    client = AsyncWebClient(
        token=os.environ["SLACK_BOT_TOKEN"], base_url=os.environ["SLACK_API_URL"]
    )
    app = AsyncApp(
        client=client,
        signing_secret=os.environ["SLACK_SIGNING_SECRET"],
        process_before_response="at-once" in sys.argv[2:],
    )

    @app.command("/orgs")
    async def orgs(ack: AsyncAck, respond: AsyncRespond) -> None:
        await ack()
        await respond("19 organizations in 8 data centers")

    app.start(port=int(sys.argv[1]), path="/slack/events", host="127.0.0.1")


if __name__ == "__main__":
    main()
