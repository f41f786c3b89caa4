"""Checks the email service's key, and lists the templates that it can read."""

from collections.abc import Sequence
from typing import Protocol

from bot.emailkey.rules import EmailTemplates, KeyCheck, KeyVerdict
from bot.errors import NotConfigured
from bot.services.errors import CredentialsRefused, PermissionMissing, ServiceError
from bot.services.lane import Lane

MODES = {"bearer": "Bearer", "basic": "Basic, user apikey"}


class EmailService(Protocol):
    """The part of the email service that is needed. Every method raises `ServiceError`s."""

    @property
    def auth(self) -> str:
        """Return `bearer` or `basic`."""
        ...

    async def check(self, resource: str) -> None:
        """Return normally if the key may read the resource."""
        ...

    async def templates(self) -> EmailTemplates:
        """Return the templates."""
        ...


class EmailKey:
    """Tests the key.

    Args:
        service: The email service; None if settings are missing.
        missing: The names of those settings.
        lane: Limits concurrent calls.
    """

    def __init__(self, service: EmailService | None, missing: tuple[str, ...], lane: Lane) -> None:
        self._service = service
        self._missing = missing
        self._lane = lane

    async def check(self, resources: Sequence[str]) -> list[KeyCheck]:
        """Try the key on each resource; failures are results, not errors.

        Raises:
            NotConfigured: The service lacks settings.
        """
        service = self._configured()
        return [await self._try(service, resource) for resource in resources]

    async def _try(self, service: EmailService, resource: str) -> KeyCheck:
        mode = MODES[service.auth]
        try:
            await self._lane.call(resource, lambda: service.check(resource), is_typed=True)
        except ServiceError as failure:
            return KeyCheck(mode, resource, _verdict(failure), failure.sentence)
        return KeyCheck(mode, resource, KeyVerdict.GOOD)

    async def templates(self, *, is_typed: bool = True) -> EmailTemplates:
        """Return the templates; unless a person typed the command, not right after a failure.

        Raises:
            NotConfigured: The service lacks settings.
            ServiceError: The request failed.
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
