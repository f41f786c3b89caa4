"""The answers to the questions in `gatehouse setup`. The settings validate their values."""

import json
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from bot.settings import phrase_of
from bot.settings.model import DataCenter


class SetupError(Exception):
    """The settings can't be written. `problems` contains one sentence per problem.

    All setup functions raise this error if an answer is wrong or a service rejects it.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


# A password manager or a file may add a line break.
Typed = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
# Not shown in logs.
Secret = Annotated[Typed | None, Field(repr=False)]
# A list of people, or "*" for everyone.
Holders = Annotated[list[Typed], BeforeValidator(lambda value: ["*"] if value == "*" else value)]


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class _VendorAnswer(_Answer):
    base_url: Typed | None = None


class DataCenterAnswer(_Answer):
    """A data center's credential: a token, or a code to exchange for one."""

    authtoken: Secret = None
    client_id: Typed | None = None
    client_secret: Secret = None
    code: Secret = None

    @model_validator(mode="after")
    def _one_credential(self) -> Self:
        client = (self.client_id, self.client_secret, self.code)
        if (any(client) and not all(client)) or bool(self.authtoken) == all(client):
            raise ValueError("needs either authtoken, or client_id, client_secret and code")
        return self


class InventoryAnswer(_VendorAnswer):
    """The answers about the inventory service."""

    vendor: Literal["zoho", "other"]
    token_url: Typed | None = None
    data_centers: dict[DataCenter, DataCenterAnswer] = Field(min_length=1)


class FlowAnswer(_VendorAnswer):
    """The answers about the flow service."""

    vendor: Literal["twilio", "other"]
    account_sid: Typed
    auth_token: Typed = Field(repr=False)
    aliases: dict[str, str] = {}


class EmailAnswer(_VendorAnswer):
    """The answers about the email service."""

    vendor: Literal["sendgrid", "other"]
    api_key: Typed = Field(repr=False)


class Answers(_Answer):
    """The answers to all questions in `gatehouse setup`."""

    slack_bot_token: Typed = Field(repr=False)
    slack_signing_secret: Secret = None
    slack_app_token: Secret = None
    url: Typed | None = None
    alerts_channel: Typed
    approvals_channel: Typed
    viewers: Holders = []
    operators: Holders = []
    approvers: Holders = []
    admins: Holders = []
    inventory: InventoryAnswer | None = None
    flow: FlowAnswer | None = None
    email: EmailAnswer | None = None


def read_answers(path: Path) -> Answers:
    """Read the answers from a JSON file."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise SetupError(f"{path} is not JSON. docs/vendors.md has an example.") from None
    return answer_of(Answers, given)


Model = TypeVar("Model", bound=BaseModel)


def answer_of(model: type[Model], given: object) -> Model:
    """Validate answers, and return them as an object of the model."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        problems = []
        for row in error.errors(include_input=False, include_url=False):
            where = " → ".join(str(part) for part in row["loc"] if part != "[key]")
            problems.append(f"{where} {phrase_of(row)}.".lstrip())
        raise SetupError(*problems) from None
