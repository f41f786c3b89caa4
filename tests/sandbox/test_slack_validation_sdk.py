"""What Slack's own SDK builds is taken: no field of theirs is unknown to the stand-in."""

import pytest
from slack_sdk.models import blocks as sdk

from sandbox.slack.validation import check_blocks

PLAIN = sdk.PlainTextObject(text="words")
MRKDWN = sdk.MarkdownTextObject(text="*words*")
OPTIONS = [sdk.Option(text=name, value=name) for name in ("one", "two")]
BUTTON = sdk.ButtonElement(text="Go", action_id="go", value="1", style="primary")
CONFIRM = sdk.ConfirmObject(title="Sure?", text="Really", confirm="Yes", deny="No", style="danger")
WORDS = sdk.RichTextSectionElement(
    elements=[
        sdk.RichTextElementParts.Text(text="bold", style={"bold": True}),
        sdk.RichTextElementParts.Link(url="https://example.com", text="link"),
        sdk.RichTextElementParts.User(user_id="U0ADMIN"),
        sdk.RichTextElementParts.Emoji(name="tada"),
        sdk.RichTextElementParts.Date(timestamp=1, format="{date}"),
    ]
)
RICH = sdk.RichTextBlock(
    elements=[
        WORDS,
        sdk.RichTextListElement(style="bullet", elements=[WORDS], indent=1),
        sdk.RichTextQuoteElement(elements=[sdk.RichTextElementParts.Text(text="q")]),
        sdk.RichTextPreformattedElement(elements=[sdk.RichTextElementParts.Text(text="p")]),
    ]
)
CARD = sdk.CardBlock(title=MRKDWN, subtitle=MRKDWN, body=MRKDWN, actions=[BUTTON])
IN_MESSAGES = [
    sdk.HeaderBlock(text="A header"),
    sdk.SectionBlock(text=MRKDWN, fields=[PLAIN, MRKDWN], accessory=BUTTON),
    sdk.SectionBlock(
        text=MRKDWN, accessory=sdk.OverflowMenuElement(action_id="o", options=OPTIONS)
    ),
    sdk.ContextBlock(
        elements=[MRKDWN, sdk.ImageElement(image_url="https://x.example/i", alt_text="i")]
    ),
    sdk.DividerBlock(),
    sdk.ImageBlock(image_url="https://x.example/i", alt_text="i", title="t"),
    sdk.ActionsBlock(
        elements=[
            sdk.ButtonElement(text="Go", action_id="b", confirm=CONFIRM),
            sdk.StaticSelectElement(placeholder="p", action_id="s", options=OPTIONS),
            sdk.ExternalDataSelectElement(placeholder="p", action_id="e", min_query_length=1),
            sdk.UserSelectElement(placeholder="p", action_id="u"),
            sdk.ConversationSelectElement(placeholder="p", action_id="c"),
            sdk.ChannelSelectElement(placeholder="p", action_id="ch"),
            sdk.DatePickerElement(action_id="d", initial_date="2026-01-01"),
            sdk.TimePickerElement(action_id="t", initial_time="10:00"),
            sdk.RadioButtonsElement(action_id="r", options=OPTIONS),
            sdk.CheckboxesElement(action_id="x", options=OPTIONS),
        ]
    ),
    sdk.MarkdownBlock(text="# words"),
    RICH,
    sdk.TableBlock(rows=[[sdk.RawTextObject(text="a"), sdk.RawNumberObject(value=1, text="1")]]),
    CARD,
    sdk.CarouselBlock(elements=[CARD]),
    sdk.ContainerBlock(title=PLAIN, child_blocks=[sdk.DividerBlock()], is_collapsible=True),
    sdk.TaskCardBlock(task_id="1", title="t", status="pending"),
    sdk.PlanBlock(title="p", tasks=[sdk.TaskCardBlock(task_id="1", title="t", status="complete")]),
]
IN_MODALS = [
    sdk.AlertBlock(text=MRKDWN, level="warning"),
    *(
        sdk.InputBlock(label="l", hint="h", optional=True, element=element)
        for element in (
            sdk.PlainTextInputElement(action_id="i", multiline=True, max_length=10),
            sdk.EmailInputElement(action_id="i"),
            sdk.UrlInputElement(action_id="i"),
            sdk.NumberInputElement(action_id="i", is_decimal_allowed=False, min_value="1"),
            sdk.DateTimePickerElement(action_id="i"),
            sdk.StaticMultiSelectElement(placeholder="p", action_id="i", options=OPTIONS),
            sdk.ExternalDataMultiSelectElement(placeholder="p", action_id="i"),
            sdk.UserMultiSelectElement(placeholder="p", action_id="i", max_selected_items=2),
            sdk.RichTextInputElement(action_id="i"),
        )
    ),
]


@pytest.mark.parametrize("block", IN_MESSAGES, ids=lambda block: str(block.type))
def test_blocks_of_the_sdk_are_taken_in_messages(block: sdk.Block) -> None:
    assert check_blocks([block.to_dict()], "message").problems == []


@pytest.mark.parametrize("block", IN_MODALS, ids=lambda block: str(block.to_dict())[:60])
def test_blocks_of_the_sdk_are_taken_in_modals(block: sdk.Block) -> None:
    assert check_blocks([block.to_dict()], "modal").problems == []
