"""A rule approves exactly what it says: many policies against many requests."""

import random

from bot.approvals.rules import AutomaticRule, FlowPolicy, is_automatic, rule_id
from bot.permissions import Policy

FLOW = "FW" + "AB" * 16
IDS = ("U1", "U2", "S1", "S2")
TIMES = (60, 3600, 7200, 86_400)


def policy(chance: random.Random) -> FlowPolicy:
    rule = AutomaticRule(
        tuple(chance.sample(IDS, chance.randint(1, 3))), chance.choice(TIMES), chance.randint(1, 3)
    )
    return FlowPolicy(
        auto=chance.choice((rule, rule, None)),
        auto_remove=chance.choice((None, True, False)),
        longest_seconds=chance.choice((None, *TIMES)),
    )


def test_applied_without_a_click_exactly_where_the_rule_says_so() -> None:
    chance, approved = random.Random(32), 0
    for _ in range(10_000):
        own, every = policy(chance), policy(chance)
        policies = {key: one for key, one in ((FLOW, own), ("*", every)) if chance.random() < 0.7}
        rules = Policy(flow_policies=policies).of_flow(FLOW)
        layers = [policies[key] for key in (FLOW, "*") if key in policies]
        rule = next((layer.auto for layer in layers if layer.auto), None)
        removes = next(
            (layer.auto_remove for layer in layers if layer.auto_remove is not None), False
        )
        longest = next((layer.longest_seconds for layer in layers if layer.longest_seconds), 10**9)
        lasts = [chance.choice((None, *TIMES, 1800)) for _ in range(chance.randint(0, 2))]
        requester_ids, used = frozenset(chance.sample(IDS, 2)), chance.randint(0, 3)
        takes_away = not lasts or chance.random() < 0.2
        expected = (
            rule is not None
            and any(item in rule.requesters for item in requester_ids)
            and used < rule.a_day
            and (removes or not takes_away)
            and None not in lasts
            and all(second <= min(rule.longest_seconds, longest) for second in lasts)
        )
        found = is_automatic(rules, used, requester_ids, lasts, takes_away=takes_away)
        assert found is expected
        approved += expected
    assert approved > 100


def test_rule_of_every_flow_is_counted_over_all_flows() -> None:
    rule = FlowPolicy(auto=AutomaticRule(("U1",), 60, 1))
    of_all, own = (Policy(flow_policies={key: rule}).of_flow(FLOW) for key in ("*", FLOW))
    assert (rule_id(of_all, FLOW), rule_id(own, FLOW)) == ("rule:*", f"rule:{FLOW}")
