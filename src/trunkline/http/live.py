"""What hot handlers read at every call, and a reload of the configuration swaps as a whole."""

from msgspec import Struct

from trunkline.routing.table import RoutingTable


class Settings(Struct, frozen=True):
    """What the handlers need of the configuration; times in seconds."""

    grace_s: float = 10.0
    keepalive_s: float = 10.0
    unstreamed_wait_s: float = 300.0
    cors_origins: tuple[str, ...] = ("*",)
    public_url: str = ""
    trusted_proxies: tuple[str, ...] = ()
    messages_max: int = 10_000
    images_max: int = 250


class Live:
    """The current routing table and settings. Read the attributes anew at every call."""

    def __init__(self, table: RoutingTable, settings: Settings) -> None:
        self.table = table
        self.settings = settings
        self.going_down = False
