"""Creates service clients from the settings, for the bot and its checks."""

from yarl import URL

from bot.emailkey import BASIC_USER, EmailClient
from bot.flows.client import FlowClient
from bot.ops.clock import Clock
from bot.ops.redaction import Redactor
from bot.organizations.client import DataCenterAccess
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import Limits, Plan
from bot.quotas.rules.quota import Terms
from bot.services.credentials import Credential, OAuthCredential, Signed, authorization
from bot.services.http import ServiceHttp
from bot.settings.model import ApiReserve, Settings, revealed


def redactor_of(settings: Settings) -> Redactor:
    """Return a redactor for all configured secrets, including their HTTP Basic forms."""
    redactor = Redactor(settings.secrets())
    if settings.flow_account_sid and settings.flow_auth_token:
        token = settings.flow_auth_token.get_secret_value()
        redactor.add(token, basic_user=settings.flow_account_sid)
    if settings.email_api_key:
        redactor.add(settings.email_api_key.get_secret_value(), basic_user=BASIC_USER)
    return redactor


def service_access(
    settings: Settings, http: ServiceHttp, clock: Clock
) -> dict[str, DataCenterAccess]:
    """Return the address and credential of each data center, and then of each other API."""
    header = f"Authorization: {settings.inventory_auth_header}"
    query = "authtoken" if settings.inventory_auth == "query" else None
    rows = [
        (str(name), settings.root_of(name), center.oauth, center.authtoken, header, query)
        for name, center in settings.inventory_data_centers.items()
    ]
    rows += [
        (name, URL(api.base_url), api.oauth, api.token, api.header, api.query)
        for name, api in settings.apis.items()
    ]
    access: dict[str, DataCenterAccess] = {}
    for name, root, grant, secret, header, query in rows:
        field, _, template = header.partition(": ")
        token = revealed(secret) or ""
        if grant is not None:
            credential: Credential = OAuthCredential(http, clock, name, grant, template, field)
        elif query is not None:
            credential = Credential(Signed(token, params={query: token}))
        else:
            credential = Credential(Signed(token, headers=authorization(template, token, field)))
        access[name] = DataCenterAccess(root, credential, settings.inventory_scope)
    return access


def quota_terms(settings: Settings) -> Terms:
    """Return the configured plans and reserves."""

    def plan_of(key: OrganizationKey) -> Plan:
        plans = settings.inventory_plans
        return Plan(plans.get(str(key), settings.inventory_default_plan))

    def reserve_of(key: OrganizationKey) -> tuple[int, int]:
        reserves = settings.inventory_reserve
        reserve = reserves.get(str(key)) or reserves.get("*") or ApiReserve()
        if key.is_api:
            api = settings.apis.get(key.service)
            reserve = api.reserve if api else ApiReserve()
        return reserve.minute, reserve.day

    apis = {name: Limits(**dict(api.limits)) for name, api in settings.apis.items()}
    return Terms(plan_of, reserve_of, apis)


def flow_client(settings: Settings, http: ServiceHttp) -> FlowClient | None:
    """Return the flow service's client, or None if settings are missing (see `missing_for`)."""
    url = settings.flow_base_url
    account = settings.flow_account_sid
    token = settings.flow_auth_token
    if url is None or account is None or token is None:
        return None
    return FlowClient(http, URL(url), account, token, settings.flow_form_field)


def email_client(settings: Settings, http: ServiceHttp) -> EmailClient | None:
    """Return the email service's client, or None if settings are missing (see `missing_for`)."""
    if settings.email_base_url is None or settings.email_api_key is None:
        return None
    url = URL(settings.email_base_url)
    return EmailClient(http, url, settings.email_api_key, settings.email_auth)
