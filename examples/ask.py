"""Ask for a change to a flow's test users, wait for the decision, and say what came of it.

    export GATEWAY_TOKEN=…      # the token of a gateway client with `owner` and `flows`
    python examples/ask.py "add welcome +15550142 for 2h because OPS-7"

Exit codes: 0 if the change was applied or there was nothing to change, 1 if it wasn't applied (it
was denied or cancelled, expired or failed), 2 if the request was refused, 3 if nobody decided in
time. It's safe to run the script again: the same text is the same request.
"""

import os
import sys
import time

import requests

GATEWAY_URL = os.environ.get("GATEWAY_URL", "http://127.0.0.1:3001")
WAIT_SECONDS = float(os.environ.get("WAIT_SECONDS", "3600"))
PAUSE_SECONDS = float(os.environ.get("PAUSE_SECONDS", "10"))
APPLIED, NOT_APPLIED, REFUSED, UNDECIDED = range(4)
# These states can still change by themselves.
OPEN = {"pending", "applying"}

session = requests.Session()


def main() -> int:
    """Ask, wait and print the outcome. Return the exit code."""
    session.headers["Authorization"] = f"Bearer {os.environ['GATEWAY_TOKEN']}"
    text = " ".join(sys.argv[1:]).encode()
    until = time.monotonic() + WAIT_SECONDS
    path = ""
    while True:
        if path:
            answer = session.get(f"{GATEWAY_URL}/testusers/{path}", timeout=60)
        else:
            answer = session.post(f"{GATEWAY_URL}/testusers", data=text, timeout=60)
        told = answer.json()
        pause = PAUSE_SECONDS
        if answer.ok:
            if not told["request"]:
                print(told["message"])
                return APPLIED
            if told["request"] != path:
                print(told["message"])
            path = told["request"]
            if told["state"] not in OPEN:
                print(told["message"], f"({told['reason']})" if told.get("reason") else "")
                return APPLIED if told["state"] == "applied" else NOT_APPLIED
        elif answer.status_code in {429, 503}:
            pause = max(pause, float(answer.headers["Retry-After"]))
        else:
            print(told["message"], file=sys.stderr)
            return REFUSED
        if time.monotonic() + pause > until:
            print("Nobody has decided in time.", file=sys.stderr)
            return UNDECIDED
        time.sleep(pause)


if __name__ == "__main__":
    sys.exit(main())
