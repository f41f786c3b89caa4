"""The flow service: the list of test users of a flow, read and replaced as a whole."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr
from yarl import URL

from bot.clients.calls import Answer, OpenAttempt, ServiceCall, at_any_time, unguarded
from bot.clients.credentials import basic
from bot.clients.failures import json_of, model_of, wrong_form
from bot.clients.http import ServiceHttp

ADVICE: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "Check FLOW_ACCOUNT_SID and FLOW_AUTH_TOKEN.",
    HTTPStatus.FORBIDDEN: "Give the account in FLOW_ACCOUNT_SID access to the flow.",
    HTTPStatus.NOT_FOUND: "Check the flow's SID, and FLOW_BASE_URL.",
}
MISSING = "There's no flow with this SID."


class _FlowAnswer(BaseModel):
    """The resource. All its fields are optional; a list under the request's name is a list too."""

    model_config = ConfigDict(strict=True, extra="ignore")

    sid: str | None = None
    test_users: list[str] | None = Field(
        default=None, validation_alias=AliasChoices("test_users", "testUsers", "TestUsers")
    )
    url: str | None = None


class FlowClient:
    """Reads and replaces lists of test users, over HTTP Basic.

    `form_field` is the name of the update's form field, which differs between deployments.
    """

    def __init__(
        self,
        http: ServiceHttp,
        base_url: URL,
        account_sid: str,
        auth_token: SecretStr,
        form_field: str = "testUsers",
    ) -> None:
        self._http = http
        self._base_url = base_url
        self._headers = basic(account_sid, auth_token)
        self._form_field = form_field

    async def read(self, flow_sid: str) -> list[str]:
        """The identities as the service has them now, in its order. Raises a ServiceError."""
        return await self._identities(flow_sid, self._call("GET", flow_sid))

    async def replace(
        self,
        flow_sid: str,
        identities: Sequence[str],
        may_send: Callable[[], bool] = at_any_time,
    ) -> list[str]:
        """Sends the whole list once, and returns the list that the answer says is stored.

        Whether that is what was sent is for the caller to see. Never repeated by itself: after a
        ServiceUnreachable or ServiceTimeout the list may have been replaced all the same.
        `may_send` is asked right before the list is written; if it says no, nothing is sent.
        """
        # A form cannot say "no values": one empty value is the empty list.
        form = [(self._form_field, identity) for identity in identities or [""]]
        call = self._call("POST", flow_sid, form)
        return await self._identities(flow_sid, call, partial(unguarded, may_send))

    def _call(
        self,
        method: Literal["GET", "POST"],
        flow_sid: str,
        form: Sequence[tuple[str, str]] | None = None,
    ) -> ServiceCall:
        return ServiceCall(
            service="flow",
            label="the flow service",
            method=method,
            url=self._base_url / "v2" / "Flows" / flow_sid / "TestUsers",
            headers=self._headers,
            form=form,
            advice=ADVICE,
            missing=MISSING,
        )

    async def _identities(
        self, flow_sid: str, call: ServiceCall, attempts: OpenAttempt = unguarded
    ) -> list[str]:
        return await self._http.request(call, partial(_identities_in, call, flow_sid), attempts)


def _identities_in(call: ServiceCall, flow_sid: str, answer: Answer) -> list[str]:
    sent = model_of(call, json_of(call, answer), _FlowAnswer)
    # What is not recognisably this resource must never be taken for an empty list: the next
    # update would make it one.
    if not sent.model_fields_set:
        raise wrong_form(call, "not a list of test users")
    if sent.sid is not None and sent.sid.casefold() != flow_sid.casefold():
        raise wrong_form(call, "for another flow")
    return [identity for identity in sent.test_users or [] if identity]
