"""Does the email service's key work, and which templates can it read."""

from typing import Protocol

from bot.errors import CredentialsRefused, NotConfigured, PermissionMissing, ServiceError
from bot.model.emailkey import EmailTemplates, KeyCheck, KeyVerdict

MODES = {"bearer": "Bearer", "basic": "Basic with the user apikey"}


class EmailService(Protocol):
    """What is needed of the email service. Every method raises `ServiceError`s."""

    @property
    def auth(self) -> str:
        """`bearer` or `basic`."""
        ...

    async def check(self, resource: str) -> None:
        """Return if the key may read the resource."""
        ...

    async def templates(self) -> EmailTemplates:
        """Return the templates."""
        ...


class EmailKey:
    """Tries the key.

    Args:
        service: None while settings are missing.
        missing: The names of those settings.
    """

    def __init__(self, service: EmailService | None, missing: tuple[str, ...]) -> None:
        self._service = service
        self._missing = missing

    async def check(self, resource: str) -> KeyCheck:
        """Try the key on a resource; what goes wrong is the verdict, not an error.

        Raises:
            NotConfigured: The service lacks settings.
        """
        service = self._configured()
        mode = MODES[service.auth]
        try:
            await service.check(resource)
        except ServiceError as failure:
            return KeyCheck(mode, resource, _verdict(failure), failure.sentence)
        return KeyCheck(mode, resource, KeyVerdict.GOOD)

    async def templates(self) -> EmailTemplates:
        """Return the templates.

        Raises:
            NotConfigured: The service lacks settings.
            ServiceError: It did not answer well.
        """
        return await self._configured().templates()

    def _configured(self) -> EmailService:
        if self._service is None:
            raise NotConfigured("the email service", self._missing)
        return self._service


def _verdict(failure: ServiceError) -> KeyVerdict:
    if isinstance(failure, CredentialsRefused):
        return KeyVerdict.REFUSED
    if isinstance(failure, PermissionMissing):
        return KeyVerdict.LACKS_PERMISSION
    return KeyVerdict.UNKNOWN
