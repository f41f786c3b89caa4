"""What stands on the screen of a person: for the eye, the keyboard and a screen reader."""

from axe_playwright_python.async_playwright import Axe

from tests.browser.person import Person


async def violations(person: Person) -> list[str]:
    """The rules of accessibility that the page breaks now, with the places."""
    found = await Axe().run(person.page)
    return [
        f"{item['id']}: {[node['html'][:160] for node in item['nodes'][:3]]}"
        for item in found.response["violations"]
    ]


async def focused(person: Person) -> str:
    """The name of what has the focus."""
    name: str = await person.page.evaluate(
        "(document.activeElement.getAttribute('aria-label') || document.activeElement.textContent)"
    )
    return name.strip()
