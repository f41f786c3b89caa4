"""The clients that the settings ask for: made here for the bot and for its doctor alike."""

from yarl import URL

from bot.clients.credentials import Credential, HeaderToken, QueryToken
from bot.clients.email import BASIC_USER, EmailClient
from bot.clients.flow import FlowClient
from bot.clients.http import TOTAL_SECONDS, ServiceHttp
from bot.clients.inventory import DataCenterAccess
from bot.model.organizations.data_centers import root_of
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.plans import MINUTE_OF_ONE_PERSON, Plan
from bot.model.quotas.quota import Terms
from bot.ops.clock import Clock
from bot.ops.redaction import Redactor
from bot.settings import DataCenterSettings, Settings


def redactor_of(settings: Settings) -> Redactor:
    """Knows every configured secret, alone and as the password of HTTP Basic."""
    redactor = Redactor(settings.secrets())
    if settings.flow_account_sid and settings.flow_auth_token:
        token = settings.flow_auth_token.get_secret_value()
        redactor.add(token, basic_user=settings.flow_account_sid)
    if settings.email_api_key:
        redactor.add(settings.email_api_key.get_secret_value(), basic_user=BASIC_USER)
    return redactor


def inventory_access(
    settings: Settings, http: ServiceHttp, clock: Clock
) -> dict[str, DataCenterAccess]:
    """How each configured data center is reached, in the order of the setting."""
    return {
        name: DataCenterAccess(
            URL(one.base_url or root_of(settings.inventory_base_url or "", name)),
            _credential(settings, name, one, http, clock),
        )
        for name, one in settings.inventory_data_centers.items()
    }


def quota_terms(settings: Settings) -> Terms:
    """The plans of the settings, and the time after which a call is given up."""

    def plan_of(key: OrganizationKey) -> Plan:
        plans = settings.inventory_plans
        return Plan(plans.get(key.organization_id, settings.inventory_default_plan))

    # Who may send that many commands is not held up by a smaller share.
    paced = settings.commands_per_minute
    share = max(MINUTE_OF_ONE_PERSON, paced) if paced else None
    return Terms(plan_of, TOTAL_SECONDS, share)


def _credential(
    settings: Settings, name: str, one: DataCenterSettings, http: ServiceHttp, clock: Clock
) -> Credential:
    template = settings.inventory_auth_header
    if one.oauth is not None:
        # Who has tokens that do not expire need not load it.
        from bot.clients.oauth import OAuthCredential, OAuthGrant

        grant = OAuthGrant(
            client_id=one.oauth.client_id,
            client_secret=one.oauth.client_secret,
            refresh_token=one.oauth.refresh_token,
            token_url=URL(one.oauth.token_url),
        )
        return OAuthCredential(http, clock, name, grant, template)
    assert one.authtoken is not None  # noqa: S101 - the settings hold exactly one of the two
    if settings.inventory_auth == "query":
        return QueryToken(one.authtoken)
    return HeaderToken(one.authtoken, template)


def flow_client(settings: Settings, http: ServiceHttp) -> FlowClient | None:
    """None while settings are missing (`Settings.missing_for` names them)."""
    url, account, token = (
        settings.flow_base_url,
        settings.flow_account_sid,
        settings.flow_auth_token,
    )
    if url is None or account is None or token is None:
        return None
    return FlowClient(http, URL(url), account, token, settings.flow_form_field)


def email_client(settings: Settings, http: ServiceHttp) -> EmailClient | None:
    """None while settings are missing (`Settings.missing_for` names them)."""
    if settings.email_base_url is None or settings.email_api_key is None:
        return None
    url = URL(settings.email_base_url)
    return EmailClient(http, url, settings.email_api_key, settings.email_auth)
