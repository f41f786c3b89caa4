"""`GATEWAY_CLIENTS` and `INVENTORY_RESERVE`: their fields and checks."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from bot.settings.names import DATA_CENTERS

if TYPE_CHECKING:
    from bot.settings import Settings

EVERY = "*"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ClientName = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]


def _organization(value: str) -> str:
    data_center, slash, organization_id = value.partition("/")
    if data_center not in DATA_CENTERS or not slash or not organization_id.strip():
        raise ValueError("is not <data center>/<organization id>, as in eu/10234695")
    return value


def _in_capitals(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _in_small_letters(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


OrganizationPath = Annotated[str, Field(max_length=80), AfterValidator(_organization)]
ReservePath = Literal["*"] | OrganizationPath
Method = Annotated[str, BeforeValidator(_in_capitals)]


class ReserveSettings(BaseModel):
    """Calls per minute and day that are left to programs that don't use Gatehouse."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    minute: int = Field(default=0, ge=0, lt=100)
    day: int = Field(default=0, ge=0)


class ClientSettings(BaseModel):
    """A gateway client. Its token is stored only as a hash: see `gateway-token`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token_sha256: Annotated[
        str, BeforeValidator(_in_small_letters), Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    ]
    organizations: Annotated[tuple[OrganizationPath, ...], Field(min_length=1)] | Literal["*"]
    methods: Annotated[tuple[Method, ...], Field(min_length=1)] = ("GET",)
    share: float = Field(default=1.0, gt=0, le=1, allow_inf_nan=False)

    @field_validator("organizations", mode="before")
    @classmethod
    def _is_list_or_every(cls, value: object) -> object:
        if value != EVERY and not isinstance(value, list | tuple):
            raise ValueError('must be a list like ["eu/10234695"], or "*" for all of them')
        return value

    @field_validator("methods")
    @classmethod
    def _are_methods(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [method for method in value if method not in METHODS]
        if unknown:
            raise ValueError(f"must be a list of {', '.join(METHODS)}")
        return value


def gateway_problems(given: Mapping[str, str], settings: "Settings") -> Iterator[tuple[str, str]]:
    """Yield conflicts between the gateway's and other settings: a setting, and the problem."""
    clients, port = settings.gateway_clients, settings.gateway_port
    if port and port == settings.port:
        yield "GATEWAY_PORT", "must differ from PORT"
    hashes = Counter(client.token_sha256 for client in clients.values())
    same = [name for name, client in clients.items() if hashes[client.token_sha256] > 1]
    if same:
        yield "GATEWAY_CLIENTS", f"gives the same token to {' and '.join(same)}"
    if not given.get("inventory_data_centers"):
        return
    for name, client in clients.items():
        paths = () if client.organizations == EVERY else client.organizations
        centers = {path.partition("/")[0] for path in paths}
        for center in sorted(centers - set(map(str, settings.inventory_data_centers))):
            problem = f"names the data center {center}, which is not in INVENTORY_DATA_CENTERS"
            yield "GATEWAY_CLIENTS", f"{name}: {problem}"
