from bot.settings import read_settings
from sandbox.services.organizations import DATA_CENTERS
from sandbox.services.state import SURVEY_FLOW, WELCOME_FLOW

SLACK = {
    "SLACK_BOT_TOKEN": "xoxb-1-sandbox",
    "SLACK_SIGNING_SECRET": "0123456789abcdef0123456789abcdef",
    # Its secrets are taken beside a Slack on this machine only.
    "SLACK_API_URL": "http://127.0.0.1:8765/api/",
    "ALERTS_CHANNEL": "C0ALERTS",
    "APPROVALS_CHANNEL": "C0APPROVALS",
}


def test_the_bot_understands_the_environment_that_points_it_here(services):
    settings = read_settings({**SLACK, **services.bot_settings()})

    assert set(settings.inventory_data_centers) == set(DATA_CENTERS)
    assert settings.inventory_data_centers["eu"].base_url == services.inventory_url("eu")
    assert settings.flow_aliases == {"welcome": WELCOME_FLOW, "survey": SURVEY_FLOW}
    assert settings.email_base_url == services.url
