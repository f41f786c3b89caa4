"""An organization of the inventory service, and the key that its limits are counted under."""

from dataclasses import dataclass

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)

UNNAMED = "(no name)"
# The specification says digits. Used in addresses and database keys, an ID must at least be short
# and free of spaces and control characters. The length is checked separately: in the pattern it
# would repeat every Unicode class 64 times.
IDENTIFIER = r"^[^\s\p{C}]+$"
LONGEST_IDENTIFIER = 64


@dataclass(frozen=True, slots=True, order=True)
class OrganizationKey:
    """The account that a call counts against: an organization of a data center.

    `organization_id` is "" for the data center itself, because its first listing names none. The
    fields are plain, ordered strings, so that the key also works in the database.
    """

    data_center: str
    organization_id: str = ""

    def __str__(self) -> str:
        return f"{self.data_center}/{self.organization_id or '-'}"

    @property
    def path(self) -> str:
        """Return the key as a button's value or a job's subject; `of_path` parses it."""
        return f"{self.data_center}/{self.organization_id}"

    @classmethod
    def of_path(cls, path: str) -> "OrganizationKey":
        """Return the key of a path; for anything else, a key that nothing is known about."""
        data_center, _, organization_id = path.partition("/")
        return cls(data_center, organization_id)


class Organization(BaseModel):
    """Every field of a listed organization; unknown fields are ignored.

    Only the ID and the name are required. The specification calls no field optional, but an
    organization without a currency, or with null for a name, must not hide all others. A present
    field of a wrong type is an error: numbers are not read from strings, nor strings from numbers.
    Dates stay as sent.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    organization_id: str = Field(pattern=IDENTIFIER, max_length=LONGEST_IDENTIFIER)
    name: str
    contact_name: str | None = None
    email: str | None = None
    is_default_org: bool = False
    language_code: str | None = None
    fiscal_year_start_month: int | None = None
    account_created_date: str | None = None
    time_zone: str | None = None
    is_org_active: bool = True
    currency_id: str | None = None
    currency_code: str | None = None
    currency_symbol: str | None = None
    currency_format: str | None = None
    price_precision: int | None = None

    @field_validator("name", "is_default_org", "is_org_active", mode="wrap")
    @classmethod
    def _null_is_nothing(
        cls, value: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> object:
        if value is not None:
            return read(value)
        return UNNAMED if info.field_name == "name" else info.field_name == "is_org_active"
