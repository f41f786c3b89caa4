"""The form field that a flow service takes is found, and no list is changed."""

import pytest

from bot.services.errors import PermissionMissing, ServiceFailed, ServiceRefused
from bot.testusers.client import taken_form_field

FLOW = "FW" + "1" * 32
MOST_BYTES = 300


class FlowService:
    """A service with one flow. It takes some fields; `lenient` about length or a missing field."""

    def __init__(self, fields=("testUsers",), *, form_first=False, lenient=(), names_field=True):
        self.fields, self.form_first, self.lenient = fields, form_first, lenient
        self.names_field = names_field
        self.lists = {FLOW: ["+15550100001", "ada"]}
        self.stored: list[list[str]] = []

    def through(self, field):
        return Client(self, field)

    def update(self, flow_sid, field, identities):
        refusals = [self.form_refusal(field, identities), self.flow_refusal(flow_sid)]
        for refusal in refusals if self.form_first else reversed(refusals):
            if refusal:
                status, words = refusal
                raise ServiceRefused("flow", words, status=status, message=words)
        kept = list(identities) if field in self.fields else []
        if flow_sid in self.lists:
            self.lists[flow_sid] = kept
        self.stored.append(kept)
        return kept

    def flow_refusal(self, flow_sid):
        return None if flow_sid in self.lists else (404, "no such flow")

    def form_refusal(self, field, identities):
        if field not in self.fields:
            missing = f"Missing {self.fields[0]}" if self.names_field else f"unknown {field}"
            return None if "missing" in self.lenient else (400, missing)
        too_long = any(len(identity.encode()) > MOST_BYTES for identity in identities)
        return (400, "too long") if too_long and "length" not in self.lenient else None


class Client:
    def __init__(self, service, field):
        self.service, self.field = service, field

    async def read(self, flow_sid):
        return list(self.service.lists[flow_sid])

    async def replace(self, flow_sid, identities):
        return self.service.update(flow_sid, self.field, identities)


@pytest.mark.parametrize("fields", [("testUsers",), ("TestUsers",), ("testUsers", "TestUsers")])
@pytest.mark.parametrize("form_first", [True, False])
@pytest.mark.parametrize("names_field", [True, False])
@pytest.mark.parametrize("configured", ["testUsers", "TestUsers"])
async def test_the_field_is_found_and_nothing_is_stored(
    fields, form_first, names_field, configured
):
    service = FlowService(fields, form_first=form_first, names_field=names_field)
    expected = configured if configured in fields else fields[0]
    assert await taken_form_field(service.through, configured, FLOW) == expected
    assert service.stored == []


@pytest.mark.parametrize("lenient", [("length",), ("missing",), ("length", "missing")])
@pytest.mark.parametrize("configured", ["testUsers", "TestUsers"])
async def test_a_lenient_service_gets_its_list_back(lenient, configured):
    service = FlowService(("TestUsers",), lenient=lenient)
    assert await taken_form_field(service.through, configured, FLOW) == "TestUsers"
    assert service.lists == {FLOW: ["+15550100001", "ada"]}


async def test_form_field_stays_unknown_without_a_flow():
    assert await taken_form_field(FlowService().through, "testUsers", None) is None
    service = FlowService(form_first=True)
    assert await taken_form_field(service.through, "TestUsers", None) == "testUsers"


@pytest.mark.parametrize(
    "error", [PermissionMissing("flow", "Read only."), ServiceFailed("flow", "Down.", status=500)]
)
async def test_a_service_that_takes_no_update_is_an_error(error):
    service = FlowService()

    def fail(flow_sid, field, identities):
        raise error

    service.update = fail
    with pytest.raises(type(error)):
        await taken_form_field(service.through, "testUsers", FLOW)
