"""The eight data centers of the inventory service and their addresses."""

from urllib.parse import urlsplit, urlunsplit

# "Regional hosts" in the specification of the inventory service.
DATA_CENTERS = {
    "com": "United States",
    "eu": "Europe",
    "in": "India",
    "com.au": "Australia",
    "jp": "Japan",
    "ca": "Canada",
    "com.cn": "China",
    "sa": "Saudi Arabia",
}
HOME_SUFFIX = ".com"


def root_of(base_url: str, data_center: str) -> str:
    """Return the API root of a data center: `base_url` with its host's suffix replaced.

    >>> root_of("https://inventory.example.com/inventory/v1", "com.au")
    'https://inventory.example.com.au/inventory/v1'

    Raises ValueError where the host does not end in `.com`, so that there is nothing to replace.
    """
    if data_center == "com":
        return base_url
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if not host.endswith(HOME_SUFFIX):
        raise ValueError(f"the host “{host}” does not end in {HOME_SUFFIX}")
    regional = f"{host.removesuffix(HOME_SUFFIX)}.{data_center}"
    port = f":{parts.port}" if parts.port else ""
    return urlunsplit(parts._replace(netloc=regional + port))
