"""A listing in a body of unknown form."""

import pytest

from bot.emailkey import EmailTemplate, EmailTemplates, templates_in


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {"templates": [{"id": "d-1", "name": "Hello"}, {"id": 7}, {"name": "Only a name"}]},
            EmailTemplates(
                (
                    EmailTemplate("d-1", "Hello"),
                    EmailTemplate("7", None),
                    EmailTemplate(None, "Only a name"),
                ),
                3,
            ),
        ),
        ({"result": [{"id": "d-1"}]}, EmailTemplates((EmailTemplate("d-1", None),), 1)),
        ({"templates": "none", "result": []}, EmailTemplates((), 0)),
        ([{"id": "d-1"}], EmailTemplates((EmailTemplate("d-1", None),), 1)),
        ({"templates": [1, None, {}, {"id": True, "name": ["x"]}]}, EmailTemplates((), 4)),
        ({"other": [{"id": 1}]}, EmailTemplates((), None)),
        (None, EmailTemplates((), None)),
        ("text", EmailTemplates((), None)),
    ],
)
def test_what_has_a_name_or_an_id_is_found_and_the_rest_counted(
    body: object, expected: EmailTemplates
) -> None:
    assert templates_in(body) == expected
