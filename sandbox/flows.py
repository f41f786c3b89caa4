"""Defines the flow aliases in the sandbox, and the policy for the practice flow."""

from sandbox.services.state import SURVEY_FLOW, WELCOME_FLOW

PRACTICE_FLOW = "FW00000000000000000000000000000003"
ALIASES = {"welcome": WELCOME_FLOW, "survey": SURVEY_FLOW, "practice": PRACTICE_FLOW}
# In this flow, requests are approved automatically.
PRACTICE = {"auto": {"from": ["S0TESTERS"], "longest": "4h", "a_day": 5}, "auto_remove": True}
