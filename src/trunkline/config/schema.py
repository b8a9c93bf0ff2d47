"""The configuration's shape: every field with its default and one line that says what it is."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from trunkline.core.provider import Provider
from trunkline.core.route import Alias
from trunkline.core.secret import Secret

DAYS_30_S = 30 * 24 * 3600
Bytes = Annotated[int, Meta(ge=1)]
Wait = Annotated[float, Meta(gt=0)]
Keep = Annotated[int, Meta(ge=0)]


class Server(Struct, frozen=True, forbid_unknown_fields=True):
    """What listens, and for whom."""

    listen: Annotated[str, Meta(description="`HOST:PORT`; port 0 takes any free one.")] = "127.0.0.1:4000"
    data_dir: Annotated[str, Meta(description="Directory of SQLite, media and the made secret.")] = "./data"
    public_url: Annotated[
        str, Meta(description="Base of media links, may hold a path; default: what the client called.")
    ] = ""
    secret: Annotated[
        Secret | None,
        Meta(description="Signs links and peppers keys; made in `data_dir` at first, required with PostgreSQL."),
    ] = None
    admin_key: Annotated[Secret | None, Meta(description="Opens `/admin` and `/metrics`.")] = None
    keepalive_s: Annotated[Wait, Meta(description="Longest silence towards a streaming client.")] = 10
    grace_s: Annotated[
        Wait, Meta(description="How long the status waits for the first event, and running streams at shutdown.")
    ] = 10
    body_max_bytes: Annotated[Bytes, Meta(description="Largest request body.")] = 67108864
    messages_max: Annotated[int, Meta(ge=1, description="Most messages of one chat.")] = 10_000
    images_max: Annotated[int, Meta(ge=0, description="Most pictures in one chat.")] = 250
    reserve_output_tokens: Annotated[
        int, Meta(ge=1, description="Output tokens reserved in a budget when the request names no maximum.")
    ] = 4096
    unstreamed_wait_s: Annotated[Wait, Meta(description="How long an unstreamed media call waits for its job.")] = 300
    cors_origins: Annotated[tuple[str, ...], Meta(description="Origins that browsers may call `/v1` from.")] = ("*",)
    log: Annotated[Literal["json", "off"], Meta(description="One line a call on stderr, as JSON.")] = "json"
    otlp: Annotated[
        str, Meta(description="OpenTelemetry collector, `http://HOST:4318`; needs the extra `otel`; default: none.")
    ] = ""
    trusted_proxies: Annotated[
        tuple[str, ...], Meta(description="Addresses or networks whose `X-Forwarded-*` headers count.")
    ] = ()


class Storage(Struct, frozen=True, forbid_unknown_fields=True):
    """Where state lives when one machine is outgrown; values as in `api_key`."""

    database: Annotated[Secret | None, Meta(description="`postgresql://…`; default: SQLite in `data_dir`.")] = None
    shared: Annotated[
        Secret | None, Meta(description="`valkey://…` or `redis://…`: counters, stream replay; default: in process.")
    ] = None
    fail_closed: Annotated[
        bool,
        Meta(description="While `shared` is away, refuse keys with a budget; false: let all in uncounted."),
    ] = True
    media: Annotated[Secret | None, Meta(description="`s3://bucket/prefix`; default: files in `data_dir`.")] = None


class Keys(Struct, frozen=True, forbid_unknown_fields=True):
    """Virtual keys."""

    required: Annotated[
        bool | None, Meta(description="Default: true, unless listening on loopback with no key made yet.")
    ] = None


class MediaStore(Struct, frozen=True, forbid_unknown_fields=True):
    """Pictures and films that are kept."""

    retain_s: Annotated[Keep, Meta(description="How long they are kept; 0: for ever.")] = DAYS_30_S
    link_ttl_s: Annotated[Keep, Meta(description="How long their links work; 0: as long as they are kept.")] = DAYS_30_S
    max_bytes: Annotated[Bytes, Meta(description="Largest picture or film that is taken in.")] = 536870912
    allow_private: Annotated[bool, Meta(description="Fetch media from private and loopback addresses too.")] = False
    proxy: Annotated[Secret | None, Meta(description="Proxy for fetching media, `http://…`.")] = None


class Resume(Struct, frozen=True, forbid_unknown_fields=True):
    """Streams that can be taken up again."""

    max_bytes: Annotated[Bytes, Meta(description="Most that is kept of one stream.")] = 67108864
    ttl_s: Annotated[Wait, Meta(description="How long a stream is kept after its end.")] = 3600


class Cache(Struct, frozen=True, forbid_unknown_fields=True):
    """Answers kept for equal requests, for those who ask for it by key or header."""

    ttl_s: Annotated[Wait, Meta(description="How long an answer is kept.")] = 3600
    max_bytes: Annotated[Bytes, Meta(description="Most that is kept of all answers.")] = 268435456


class Debug(Struct, frozen=True, forbid_unknown_fields=True):
    """For finding faults."""

    record: Annotated[
        str, Meta(description="Directory for the raw bytes of upstream answers, as `trunkline replay` plays them.")
    ] = ""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything. After loading, `providers` holds those that are on, shipped ones first in shipped order."""

    server: Annotated[Server, Meta(description="What listens, and for whom.")] = Server()
    storage: Annotated[Storage, Meta(description="Where state lives when one machine is outgrown.")] = Storage()
    providers: Annotated[
        dict[str, Provider], Meta(description="By name: of a shipped provider what differs, of your own the whole.")
    ] = field(default_factory=dict)
    models: Annotated[dict[str, Alias], Meta(description="By the name, or pattern of names, that clients ask for.")] = (
        field(default_factory=dict)
    )
    keys: Annotated[Keys, Meta(description="Virtual keys.")] = Keys()
    media: Annotated[MediaStore, Meta(description="Pictures and films that are kept.")] = MediaStore()
    resume: Annotated[Resume, Meta(description="Streams that can be taken up again.")] = Resume()
    cache: Annotated[Cache, Meta(description="Answers kept for equal requests.")] = Cache()
    debug: Annotated[Debug, Meta(description="For finding faults.")] = Debug()
