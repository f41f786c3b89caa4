"""Calls that people cause: few at once, none by a button of what has just failed."""

import asyncio

import pytest

from bot.services.errors import CredentialsRefused, ServiceFailed
from bot.services.http import Lane
from tests.support.clock import FakeClock


class Service:
    """Counts calls; each fails with `error`, if there is one."""

    def __init__(self, error=None):
        self.error, self.calls, self.running, self.most = error, 0, 0, 0

    async def __call__(self):
        self.calls += 1
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        if self.error:
            raise self.error
        return self.calls


async def failing(lane, service, key="a", *, is_typed=False):
    with pytest.raises(type(service.error)):
        await lane.call(key, service, is_typed=is_typed)


async def test_buttons_make_no_call_right_after_a_failure():
    clock = FakeClock()
    lane, service = Lane(clock), Service(ServiceFailed("flow", "It broke.", status=500))
    for _ in range(300):
        await failing(lane, service)
    assert service.calls == 1
    clock.advance(5)
    await failing(lane, service)
    assert service.calls == 2


async def test_failure_is_of_its_key_and_refused_credential_of_all():
    clock = FakeClock()
    lane, service = Lane(clock), Service(ServiceFailed("flow", "It broke.", status=500))
    for key in "aab":
        await failing(lane, service, key)
    assert service.calls == 2
    service.error = CredentialsRefused("flow", "Refused.")
    for key in "cde":
        await failing(lane, service, key)
    assert service.calls == 3
