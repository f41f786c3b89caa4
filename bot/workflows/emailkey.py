"""Does the email service's key work, and which templates can it read."""

from typing import Protocol

from bot.errors import NotConfigured
from bot.model.emailkey import EmailTemplates, KeyCheck, KeyVerdict
from bot.service_errors import CredentialsRefused, PermissionMissing, ServiceError
from bot.workflows.lane import Lane

MODES = {"bearer": "Bearer", "basic": "Basic, user apikey"}


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
        lane: Keeps the calls few.
    """

    def __init__(self, service: EmailService | None, missing: tuple[str, ...], lane: Lane) -> None:
        self._service = service
        self._missing = missing
        self._lane = lane

    async def check(self, resource: str) -> KeyCheck:
        """Try the key on a resource; what goes wrong is the verdict, not an error.

        Raises:
            NotConfigured: The service lacks settings.
        """
        service = self._configured()
        mode = MODES[service.auth]
        try:
            await self._lane.call(resource, lambda: service.check(resource), is_typed=True)
        except ServiceError as failure:
            return KeyCheck(mode, resource, _verdict(failure), failure.sentence)
        return KeyCheck(mode, resource, KeyVerdict.GOOD)

    async def templates(self, *, is_typed: bool = True) -> EmailTemplates:
        """Return the templates; unless somebody typed for them, not right after a failure.

        Raises:
            NotConfigured: The service lacks settings.
            ServiceError: It did not answer well.
        """
        templates = self._configured().templates
        return await self._lane.call("templates", templates, is_typed=is_typed)

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
