import hmac
import json
from base64 import urlsafe_b64decode
from datetime import UTC, datetime

import pytest

from trunkline.core.ports import HttpRequest
from trunkline.core.provider import AuthKind
from trunkline.core.secret import Secret
from trunkline.upstream.credentials import Credential
from trunkline.upstream.sigv4 import AwsKey, signature_headers

REQUEST = HttpRequest("POST", "https://host.test/v1", (("content-type", "application/json"),), b"{}")


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ("bearer", ("authorization", "Bearer s3cret")),
        ("key", ("authorization", "Key s3cret")),
        ("api-key", ("api-key", "s3cret")),
        ("x-api-key", ("x-api-key", "s3cret")),
        ("x-goog-api-key", ("x-goog-api-key", "s3cret")),
    ],
)
def test_a_key_goes_into_its_header(auth: AuthKind, header: tuple[str, str]) -> None:
    request = Credential(auth, Secret("s3cret")).authorize(REQUEST)
    assert request.headers == (*REQUEST.headers, header)
    assert (request.url, request.body) == (REQUEST.url, REQUEST.body)


def test_without_a_credential_or_scheme_a_request_stays_as_it_is() -> None:
    assert Credential("bearer", None).authorize(REQUEST) is REQUEST
    assert Credential("none", Secret("s3cret")).authorize(REQUEST) is REQUEST


def test_a_credential_shows_an_id_and_never_the_secret() -> None:
    credential = Credential("bearer", Secret("s3cret", "env:SOME_KEY"))
    assert credential.id == Credential("x-api-key", Secret("s3cret")).id
    assert credential.id != Credential("bearer", Secret("other")).id
    assert repr(credential) == "Credential(env:SOME_KEY)"
    assert "s3cret" not in f"{Credential('bearer', Secret('s3cret'))} {credential.id}"
    assert "SECRET" not in repr(AwsKey("id", "SECRET"))


@pytest.mark.parametrize(
    ("auth", "secret", "options", "message"),
    [
        ("bearer", "a\r\nb", {}, "line break"),
        ("bearer", "key\n", {}, "line break"),
        ("bearer", "ключ", {}, "no header takes"),
        ("sigv4", "k3y", {"region": "r", "access_key_id": "i"}, r"needs options\.service$"),
        ("sigv4", "k3y", {}, r"needs options\.access_key_id and options\.region and options\.service"),
        ("bigmodel_jwt", "nodot", {}, r"ID\.SECRET"),
    ],
)
def test_what_is_wrong_with_a_key_is_said_at_once_without_showing_it(
    auth: AuthKind, secret: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        Credential(auth, Secret(secret), options)
    assert secret not in str(caught.value)


def test_a_token_is_signed_and_kept_for_less_than_it_lives() -> None:
    now_s = 1_750_000_000
    credential = Credential("bigmodel_jwt", Secret("id7.s3.cret"), now_ns=lambda: now_s * 10**9)

    def token() -> str:
        name, value = credential.authorize(REQUEST).headers[-1]
        assert name == "authorization"
        return value.removeprefix("Bearer ")

    first = token()
    head, payload, signature = (urlsafe_b64decode(part + "==") for part in first.split("."))
    assert json.loads(head) == {"alg": "HS256", "sign_type": "SIGN"}
    assert json.loads(payload) == {"api_key": "id7", "exp": 1_750_000_210_000, "timestamp": 1_750_000_000_000}
    assert signature == hmac.digest(b"s3.cret", first.rpartition(".")[0].encode(), "sha256")
    now_s += 179
    assert token() == first
    now_s += 1
    assert token() != first


# The vectors that AWS publishes: the General Reference's ListUsers example and the Signature Version 4 test suite.
AWS = AwsKey("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
FORM = ("content-type", "application/x-www-form-urlencoded")
TOKEN = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI"
    "/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT"
    "38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
)


@pytest.mark.parametrize(
    ("method", "target", "headers", "body", "signature"),
    [
        ("GET", "/", (), b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "/", (), b"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            (),
            b"",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "GET",
            "/?Param1=value2&Param1=Value1",
            (),
            b"",
            "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1",
        ),
        ("GET", "/?Param1=value1", (), b"", "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"),
        (
            "GET",
            "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            (),
            b"",
            "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
        ),
        (
            "GET",
            "/",
            (("my-header1", " value1"), ("my-header2", ' "a   b   c"')),
            b"",
            "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
        ),
        (
            "GET",
            "/",
            (("my-header1", "value2"), ("my-header1", "value2"), ("my-header1", "value1")),
            b"",
            "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
        ),
        ("POST", "/", (FORM,), b"Param1=value1", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
    ],
)
def test_signatures_are_those_of_the_published_test_suite(
    method: str, target: str, headers: tuple[tuple[str, str], ...], body: bytes, signature: str
) -> None:
    request = HttpRequest(method, f"https://example.amazonaws.com{target}", headers, body)
    now = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
    date, authorization = signature_headers(request, AWS, region="us-east-1", service="service", now=now)
    assert date == ("x-amz-date", "20150830T123600Z")
    names = ";".join(sorted({"host", "x-amz-date", *(name for name, _ in headers)}))
    assert authorization == (
        "authorization",
        (
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            f"SignedHeaders={names}, Signature={signature}"
        ),
    )


def test_the_list_users_example_is_signed_as_published() -> None:
    form = ("content-type", "application/x-www-form-urlencoded; charset=utf-8")
    request = HttpRequest("GET", "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", (form,))
    now_ns = int(datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp()) * 10**9
    options = {"access_key_id": AWS.access_key_id, "region": "us-east-1", "service": "iam"}
    credential = Credential("sigv4", Secret(AWS.secret), options, lambda: now_ns)
    assert (
        credential.authorize(request)
        .headers[-1][1]
        .endswith(
            "SignedHeaders=content-type;host;x-amz-date, "
            "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        )
    )


def test_a_session_token_is_signed_with_the_rest() -> None:
    request = HttpRequest("POST", "https://example.amazonaws.com/", (("x-amz-security-token", TOKEN),))
    now = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
    headers = signature_headers(request, AWS, region="us-east-1", service="service", now=now)
    assert headers[-1][1].endswith("Signature=85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead")
