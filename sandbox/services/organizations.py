"""Defines the sandbox's initial organizations, and creates more organizations for tests."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property

DATA_CENTERS = ("com", "eu", "in", "com.au", "jp", "ca", "com.cn", "sa")


@dataclass(frozen=True)
class Organization:
    """An organization with the fields that the inventory API returns."""

    organization_id: str
    name: str
    contact_name: str
    email: str
    is_default_org: bool
    language_code: str
    fiscal_year_start_month: int
    account_created_date: str
    time_zone: str
    is_org_active: bool
    currency_id: str
    currency_code: str
    currency_symbol: str
    currency_format: str = "###,##0.00"
    price_precision: int = 2


class DataCenter:
    """A data center with its organizations, in the order in which the API lists them."""

    def __init__(self, suffix: str, organizations: Iterable[Organization]) -> None:
        self.suffix = suffix
        self.organizations = tuple(organizations)

    def has(self, organization_id: str) -> bool:
        """Return True if the organization belongs to this data center."""
        return organization_id in self._ids

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(organization.organization_id for organization in self.organizations)

    @cached_property
    def listing(self) -> bytes:
        """The response body, which is encoded only once because it can be long."""
        organizations = [asdict(organization) for organization in self.organizations]
        answer = {"code": 0, "message": "success", "organizations": organizations}
        return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True)
class _Locale:
    language_code: str
    time_zone: str
    currency_id: str
    currency_code: str
    currency_symbol: str
    price_precision: int = 2


_LOCALES = {
    "com": _Locale("en", "PST", "460000000000097", "USD", "$"),
    "eu": _Locale("de", "CET", "460000000000099", "EUR", "€"),
    "in": _Locale("en", "IST", "460000000000103", "INR", "₹"),
    "com.au": _Locale("en", "AEST", "460000000000105", "AUD", "A$"),
    "jp": _Locale("ja", "JST", "460000000000107", "JPY", "¥", 0),
    "ca": _Locale("fr", "EST", "460000000000109", "CAD", "CA$"),
    "com.cn": _Locale("zh", "CST", "460000000000111", "CNY", "CN¥"),
    "sa": _Locale("ar", "AST", "460000000000113", "SAR", "ر.س"),
}

# Data center, id, name, contact, mail, created, active. The first of a data center is its default.
# The names contain what real names can contain: markup, emoji and right-to-left text. One name
# exists in two data centers.
_DEMO = (
    ("com", "10234695", "Northwind Traders", "Maria Anders", "maria", "2016-02-18", True),
    ("com", "10407630", "Tailspin Toys", "John Smith", "john", "2019-07-03", True),
    ("com", "10988211", "🌵 Cactus & Co", "Ana Ruiz", "ana", "2023-11-27", True),
    ("com", "10511902", "Wingtip Archive", "Lee Gold", "lee", "2014-05-30", False),
    ("eu", "20077314", "Müller & Söhne <Berlin>", "Jörg Müller", "joerg", "2017-01-09", True),
    ("eu", "20077315", "Northwind Traders", "Hanna Moos", "hanna", "2018-10-22", True),
    ("eu", "20145880", "Café Zoë", "Zoë Laurent", "zoe", "2021-03-15", True),
    ("in", "60018842", "Sundaram Textiles", "Priya Nair", "priya", "2015-08-12", True),
    ("in", "60020957", "Ganges Spice Exports", "Ravi Kumar", "ravi", "2020-12-01", True),
    ("com.au", "70003391", "Southern Cross Surfboards", "Mia O'Brien", "mia", "2018-04-04", True),
    ("com.au", "70003977", "Outback *Tools* _Hire_", "Jack Walsh", "jack", "2013-09-19", False),
    ("jp", "80004410", "桜井製作所", "桜井 健", "ken", "2019-02-28", True),
    ("jp", "80004655", "Kyoto Paper Works", "Yui Tanaka", "yui", "2022-06-16", True),
    ("ca", "90001276", "Maple <Leaf> Outdoors", "Chloé Tremblay", "chloe", "2020-01-31", True),
    ("ca", "90001301", "Hudson & Daughters", "Emma Roy", "emma", "2021-08-25", True),
    ("com.cn", "50006120", "上海晨光贸易有限公司", "王 芳", "fang", "2018-11-11", True),
    ("com.cn", "50006544", "Lotus Electronics", "Li Wei", "wei", "2012-03-07", False),
    ("sa", "30002218", "شركة النخيل التجارية", "نورة العتيبي", "noura", "2021-05-05", True),
    ("sa", "30002290", "Red Sea Logistics", "Omar Saleh", "omar", "2024-02-14", True),
)


def demo_data_centers() -> dict[str, DataCenter]:
    """Return the eight data centers with their initial organizations."""
    listed: dict[str, list[Organization]] = {suffix: [] for suffix in DATA_CENTERS}
    for suffix, number, name, contact, mail, created, active in _DEMO:
        listed[suffix].append(
            _organization(
                suffix,
                organization_id=number,
                name=name,
                contact_name=contact,
                email=f"{mail}@{number}.example",
                is_default_org=not listed[suffix],
                account_created_date=created,
                is_org_active=active,
            )
        )
    return {suffix: DataCenter(suffix, listed[suffix]) for suffix in DATA_CENTERS}


def many_organizations(
    suffix: str, count: int, name_length: int = 300, start: int = 400_000_000
) -> tuple[Organization, ...]:
    """Return `count` organizations. Each name is unique and has `name_length` characters.

    For 10,000 organizations whose names are 300 characters long, the API's response is 7 MB.
    """
    return tuple(
        _organization(
            suffix,
            organization_id=str(start + number),
            name=f"Organization {number:05} {'of many names ' * 30}"[:name_length].ljust(
                name_length, "."
            ),
            contact_name=f"Contact {number}",
            email=f"contact{number}@many.example",
            is_default_org=number == 0,
            account_created_date="2020-01-01",
            is_org_active=number % 50 != 49,
        )
        for number in range(count)
    )


def _organization(suffix: str, **fields: object) -> Organization:
    return Organization(fiscal_year_start_month=0, **asdict(_LOCALES[suffix]), **fields)  # type: ignore[arg-type]
