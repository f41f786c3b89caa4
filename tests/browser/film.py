"""Makes an animation of the sandbox from screenshots."""

import io
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image
from playwright.async_api import FloatRect

from tests.browser.person import Person

TYPED_AT_ONCE = 7
TYPING_MS = 120
QUALITY = 60
# The page's policy forbids a style attribute, but not its properties.
CAPTION = """words => {
    const app = document.getElementById("app");
    const node = document.getElementById("caption") ?? document.createElement("div");
    const height = "calc(100dvh - 40px)";
    document.body.style.paddingTop = "40px";
    app.style.height = app.style.gridTemplateRows = height;
    node.id = "caption";
    node.textContent = words;
    node.style.cssText = "position: fixed; inset: 0 0 auto 272px; height: 40px; z-index: 40;"
        + "line-height: 40px; text-align: center; font-size: 17px; font-weight: 600;"
        + "background: #231d3d; color: #fff";
    document.body.append(node);
}"""


@dataclass
class Film:
    """Takes screenshots of one part of the page, and saves them as an animation."""

    person: Person
    part: FloatRect
    frames: list[tuple[bytes, int]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The length of the film in seconds."""
        return sum(milliseconds for _, milliseconds in self.frames) / 1000

    async def show(self, milliseconds: int) -> None:
        """Add a screenshot that the film shows for the given number of milliseconds."""
        picture = await self.person.page.screenshot(clip=self.part)
        self.frames.append((picture, milliseconds))

    async def type(self, text: str) -> None:
        """Type a command into the message box, a few characters at a time, and send the command."""
        for end in range(TYPED_AT_ONCE, len(text) + TYPED_AT_ONCE, TYPED_AT_ONCE):
            await self.person.composer.fill(text[:end])
            await self.show(TYPING_MS)
        await self.show(600)
        await self.person.composer.press("Enter")

    async def caption(self, words: str) -> None:
        """Show a caption in a separate bar above the page."""
        await self.person.page.evaluate(CAPTION, words)

    def save(self, path: Path) -> None:
        """Save the film as a looping animated WebP image."""
        pictures = [Image.open(io.BytesIO(picture)) for picture, _ in self.frames]
        pictures[0].save(
            path,
            save_all=True,
            append_images=pictures[1:],
            duration=[milliseconds for _, milliseconds in self.frames],
            loop=0,
            quality=QUALITY,
            method=4,
        )
