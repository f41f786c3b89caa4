"""A rule approves exactly what it says: many policies against many requests."""

import random

from bot.approvals.rules.automatic import Candidate, is_automatic, rule_id
from bot.approvals.rules.policies import AutomaticRule, FlowPolicy, flow_rules

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


def candidate(chance: random.Random) -> Candidate:
    lasts = [chance.choice((None, *TIMES, 1800)) for _ in range(chance.randint(0, 2))]
    return Candidate(
        frozenset(chance.sample(IDS, 2)),
        lasts,
        takes_away=not lasts or chance.random() < 0.2,
        starts_later=chance.random() < 0.2,
    )


def test_applied_without_a_click_exactly_where_the_rule_says_so() -> None:
    chance, approved = random.Random(32), 0
    for _ in range(10_000):
        own, every = policy(chance), policy(chance)
        policies = {key: one for key, one in ((FLOW, own), ("*", every)) if chance.random() < 0.7}
        rules = flow_rules(FLOW, policies, {}, 1)
        layers = [policies[key] for key in (FLOW, "*") if key in policies]
        rule = next((layer.auto for layer in layers if layer.auto), None)
        removes = next(
            (layer.auto_remove for layer in layers if layer.auto_remove is not None), False
        )
        longest = next((layer.longest_seconds for layer in layers if layer.longest_seconds), 10**9)
        asked, used = candidate(chance), chance.randint(0, 3)
        expected = (
            rule is not None
            and any(item in rule.requesters for item in asked.requester_ids)
            and used < rule.a_day
            and not asked.starts_later
            and (removes or not asked.takes_away)
            and None not in asked.lasts_seconds
            and all(second <= min(rule.longest_seconds, longest) for second in asked.lasts_seconds)
        )
        assert is_automatic(rules, asked, used) is expected
        approved += expected
    assert approved > 100


def test_rule_of_every_flow_is_counted_over_all_flows() -> None:
    rule = FlowPolicy(auto=AutomaticRule(("U1",), 60, 1))
    of_all, own = flow_rules(FLOW, {"*": rule}, {}, 1), flow_rules(FLOW, {FLOW: rule}, {}, 1)
    assert (rule_id(of_all, FLOW), rule_id(own, FLOW)) == ("rule:*", f"rule:{FLOW}")
