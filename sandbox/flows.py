"""The flows that the sandbox's bot knows, and the policy for one of them."""

from sandbox.services.state import SURVEY_FLOW, WELCOME_FLOW

PRACTICE_FLOW = "FW00000000000000000000000000000003"
ALIASES = {"welcome": WELCOME_FLOW, "survey": SURVEY_FLOW, "practice": PRACTICE_FLOW}
# In this flow, requests are approved automatically.
PRACTICE = {"auto": {"from": ["S0TESTERS"], "longest": "4h", "a_day": 5}, "auto_remove": True}
