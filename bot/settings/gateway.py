"""`GATEWAY_CLIENTS` and `INVENTORY_RESERVE`: their fields and checks."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from bot.gateway.rules import METHODS, GatewayClient
from bot.organizations.rules import DATA_CENTERS, OrganizationKey

if TYPE_CHECKING:
    from bot.settings import Settings

EVERY = "*"
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
    """Calls per minute and day left to programs that don't use Gatehouse."""

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

    def named(self, name: str) -> GatewayClient:
        """Return the client with this name."""
        keys = None
        if self.organizations != EVERY:
            keys = frozenset(
                OrganizationKey.of_path(organization) for organization in self.organizations
            )
        return GatewayClient(name, self.token_sha256, keys, frozenset(self.methods), self.share)


def gateway_problems(given: Mapping[str, str], settings: "Settings") -> list[tuple[str, str]]:
    """Return problems between the gateway's and other settings, as (setting, problem)."""
    clients, port = settings.gateway_clients, settings.gateway_port
    hashes = Counter(client.token_sha256 for client in clients.values())
    same = [name for name, client in clients.items() if hashes[client.token_sha256] > 1]
    problems = []
    if same:
        problems.append(f"gives the same token to {' and '.join(same)}")
    if given.get("inventory_data_centers"):
        configured = set(map(str, settings.inventory_data_centers))
        for name, client in clients.items():
            problems += _unconfigured(name, client, configured)
    if port and port == settings.port:
        return [
            ("GATEWAY_PORT", "must differ from PORT"),
            *(("GATEWAY_CLIENTS", problem) for problem in problems),
        ]
    return [("GATEWAY_CLIENTS", problem) for problem in problems]


def _unconfigured(name: str, client: ClientSettings, configured: set[str]) -> list[str]:
    paths = () if client.organizations == EVERY else client.organizations
    centers = sorted({path.partition("/")[0] for path in paths} - configured)
    return [
        f"{name}: names the data center {center}, which INVENTORY_DATA_CENTERS does not have"
        for center in centers
    ]
