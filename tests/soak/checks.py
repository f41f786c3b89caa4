"""What must be true after a soak."""

from collections import defaultdict

from sandbox.services.calls import Call
from tests.soak.actors import BLOCKED, Soak
from tests.support.story import ALERTS

TRUE_SECONDS = 90.0
CLEARED_SECONDS = 150.0
MINUTE_SECONDS = 60.0
PER_MINUTE = 100
# As many people type at the same time, so no more commands can be with one process.
LOST_AT_ONCE = 5
# A call may arrive at the service's last moment of a block and be answered after it.
EDGE_SECONDS = 2.0


async def check(soak: Soak) -> dict[str, object]:
    """Hold everything to the model; return what was found, for the table.

    Raises:
        AssertionError: Something is not as it must be.
    """
    await soak.story.comes_true(TRUE_SECONDS)
    await cleared(soak)
    provoked = [call for call in soak.fleet.services.state.refused if not is_blocked(soak, call)]
    assert not provoked, f"the bot provoked {len(provoked)} refusals: {provoked[:3]}"
    most = most_in_a_minute(soak.fleet.services.state.calls)
    assert most <= PER_MINUTE, f"{most} calls in a minute"
    lost, kills = soak.counts["commands lost with a killed process"], soak.counts["kills -9"]
    assert lost <= kills * LOST_AT_ONCE, f"{lost} commands lost with {kills} kills"
    said = await soak.fleet.verify_audit()
    assert not soak.fleet.tracebacks, soak.fleet.tracebacks[0][:3000]
    entries = await soak.fleet.look_at_audit()
    requests = len(soak.story.expected_requests)
    return {
        "lists, cards and messages as the model says": f"{requests} requests",
        "audit": f"intact, {entries} entries ({said.partition(',')[0]})",
        "most calls of one organization in any minute": most,
        "refusals that the bot provoked": 0,
        "incident messages": len(soak.fleet.slack.workspace.messages(ALERTS)),
        "tracebacks in the logs": 0,
    }


async def cleared(soak: Soak) -> None:
    """Every incident is one message, and is over."""
    workspace = soak.fleet.slack.workspace
    await soak.fleet.slack.until(
        lambda: all("Cleared" in message.text for message in workspace.messages(ALERTS)),
        timeout=CLEARED_SECONDS,
    )
    for at in BLOCKED:
        blocks = sum(block[0] == at for block in soak.blocks)
        alerts = sum(at[1] in message.all_text for message in workspace.messages(ALERTS))
        assert alerts <= blocks, f"{at}: {blocks} blocks, {alerts} messages"


def is_blocked(soak: Soak, call: Call) -> bool:
    """Whether another client had the organization blocked at that moment."""
    at = (call.data_center, call.organization_id)
    return any(
        block == at and begin - EDGE_SECONDS <= call.arrived_at <= end + EDGE_SECONDS
        for block, begin, end in soak.blocks
    )


def most_in_a_minute(calls: list[Call]) -> int:
    """The most calls of one organization that the service counted within sixty seconds."""
    counted: dict[tuple[str | None, str | None], list[float]] = defaultdict(list)
    for call in calls:
        if call.counted_at is not None:
            counted[call.data_center, call.organization_id].append(call.counted_at)
    return max((_most(sorted(times)) for times in counted.values()), default=0)


def _most(times: list[float]) -> int:
    first, most = 0, 0
    for last, at in enumerate(times):
        while at - times[first] >= MINUTE_SECONDS:
            first += 1
        most = max(most, last - first + 1)
    return most
