"""What of a changed configuration a running gateway takes over, and what waits for its next start."""

from msgspec.structs import asdict, replace

from trunkline.config.schema import Config

AT_START = ("listen", "data_dir", "secret", "admin_key", "reserve_output_tokens", "log", "otlp")
"""Of `[server]`."""
SECTIONS_AT_START = ("storage", "media", "resume", "cache", "debug")


def taken_over(running: Config, read: Config) -> tuple[Config, list[str]]:
    """Give what is to be used from now on, and the names of what has changed and waits for the next start."""
    former, server = asdict(running.server), asdict(read.server)
    late = [f"server.{name}" for name in AT_START if former[name] != server[name]]
    late += [name for name in SECTIONS_AT_START if getattr(running, name) != getattr(read, name)]
    providers = dict(read.providers)
    if providers.get("local") != running.providers.get("local"):
        late.append("providers.local")
        providers.pop("local", None)
        if "local" in running.providers:
            providers["local"] = running.providers["local"]
    used = replace(
        read,
        server=replace(read.server, **{name: former[name] for name in AT_START}),
        providers=providers,
        **{name: getattr(running, name) for name in SECTIONS_AT_START},
    )
    return used, late
