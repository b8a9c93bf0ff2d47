"""What is told of a provider that refuses: of the gateway's credential never its words, which may hold it."""

import json

import pytest

from trunkline.wire.error_body import read_error_body


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("unsupported_country_region_territory", "HTTP 403, unsupported_country_region_territory"),
        ("sk-abcdef_ghi", "HTTP 403"),
        ("sk_live_4f3a", "HTTP 403"),
        (403, "HTTP 403"),
        (None, "HTTP 403"),
    ],
)
def test_its_code_is_told_where_it_is_made_of_words(code: object, told: str) -> None:
    body = json.dumps({"error": {"message": "no, sk-1234567890abcdef", "code": code}}).encode()
    error = read_error_body(403, body)
    assert error.code == "upstream_auth"
    assert error.message == f"the provider refused the gateway's credential ({told})"


@pytest.mark.parametrize(
    "words",
    [
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        'Failed to parse tools: Missing tool function: {"type":"function"}',
        "Failed to parse messages: [json.exception.out_of_range.403] key 'text' not found",
    ],
)
def test_what_llamacpp_does_not_take_is_the_requests_fault(words: str) -> None:
    """It says so with a 500: asked again, it would say so again."""
    body = json.dumps({"error": {"code": 500, "message": words, "type": "server_error"}}).encode()
    error = read_error_body(500, body)
    assert (error.code, error.status, error.type) == ("invalid_request", 400, "invalid_request_error")
