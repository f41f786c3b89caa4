"""An organization of the inventory service, and the key its limits are counted under."""

from collections.abc import Sequence
from itertools import chain

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)

from bot.dataclass import dataclass

PORTION = 500
UNNAMED = "(no name)"
# Digits, says the specification. What goes into an address and a key of the database has at least
# to be short, and without spaces and control characters.
# The length has a bound of its own: in the pattern it would repeat every class of Unicode 64 times.
IDENTIFIER = r"^[^\s\p{C}]+$"
LONGEST_IDENTIFIER = 64


@dataclass(frozen=True, slots=True, order=True)
class OrganizationKey:
    """Whom a call counts against: an organization of a data center.

    `organization_id` is "" for the data center itself: the first listing of all names none.
    Plain strings that order, so that the key is a key in the database too.
    """

    data_center: str
    organization_id: str = ""

    def __str__(self) -> str:
        return f"{self.data_center}/{self.organization_id or '-'}"

    @property
    def path(self) -> str:
        """As a button's value or the subject of a job; `of_path` reads it back."""
        return f"{self.data_center}/{self.organization_id}"

    @classmethod
    def of_path(cls, path: str) -> "OrganizationKey":
        """The key of a path; of anything else, one that nothing is known about."""
        data_center, _, organization_id = path.partition("/")
        return cls(data_center, organization_id)


class Organization(BaseModel):
    """Every field of an organization in the listing; fields that are not known are ignored.

    Only the id and the name must be there: the specification says of none that it is optional, but
    one organization without a currency, or with null for a name, must not hide all others. Present
    with a wrong type is an error: numbers are not read from strings, nor strings from numbers.
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


_MANY = TypeAdapter(list[Organization])


def read_in_portions(items: object) -> list[Organization]:
    """Return what is listed as organizations.

    In portions, so that a thread that reads ten thousand lets others run in between: within one
    call of pydantic none does.

    Raises:
        pydantic.ValidationError: Something is of another form.
    """
    if not isinstance(items, list):
        return _MANY.validate_python(items)
    starts = range(0, len(items), PORTION)
    return list(
        chain.from_iterable(_MANY.validate_python(items[at : at + PORTION]) for at in starts)
    )


def write_in_portions(organizations: Sequence[Organization]) -> str:
    """Return the organizations as JSON, likewise."""
    starts = range(0, len(organizations), PORTION)
    portions = (_MANY.dump_json([*organizations[at : at + PORTION]]) for at in starts)
    return f"[{','.join(one.decode()[1:-1] for one in portions)}]"
