"""Functions that check the page's accessibility and keyboard focus."""

from axe_playwright_python.async_playwright import Axe

from tests.browser.person import Person


async def violations(person: Person) -> list[str]:
    """Return the accessibility rules that the page breaks, and where it breaks them."""
    found = await Axe().run(person.page)
    return [
        f"{item['id']}: {[node['html'][:160] for node in item['nodes'][:3]]}"
        for item in found.response["violations"]
    ]


async def focused(person: Person) -> str:
    """Return the name of the focused element."""
    name: str = await person.page.evaluate(
        "(document.activeElement.getAttribute('aria-label') || document.activeElement.textContent)"
    )
    return name.strip()
