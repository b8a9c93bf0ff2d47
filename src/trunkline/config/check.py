"""What a configuration must hold beyond its types: addresses, targets, names that have to fit together."""

import ipaddress
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from trunkline.config.providers import State
from trunkline.config.read import ConfigError, join, not_one_of
from trunkline.config.schema import Config
from trunkline.core.loopback import is_loopback
from trunkline.core.route import Alias, AliasTarget, split_target
from trunkline.core.secret import Secret
from trunkline.routing.table import RoutingTable, UnknownModelError, is_pattern

SCHEMES = {
    "database": ("postgresql", "postgres", "sqlite"),
    "shared": ("valkey", "valkeys", "redis", "rediss"),
    "media": ("s3",),
}
NO_ADMIN_KEY = (
    "`server.listen` {} is open to other machines, so an admin key is needed: set TRUNKLINE_ADMIN_KEY to a long random "
    "text, such as the output of `openssl rand -hex 32`"
)
PLACES = {"database": "USER:PASSWORD@HOST:PORT/NAME", "shared": "HOST:PORT/NUMBER", "media": "BUCKET/PREFIX"}


def check(config: Config, states: Mapping[str, State]) -> tuple[list[str], list[str]]:
    """Give the faults and the warnings of a configuration whose types are right."""
    problems = [*_server(config), *_storage(config), *_providers(config)]
    for name, alias in config.models.items():
        problems += _targets(join("models", name), alias, states)
    if problems:
        return problems, []
    return list(_meanings(config)), list(_warnings(config))


def check_open(config: Config, source: str = "") -> None:
    """Refuse to serve other machines without an admin key, which no other command needs. Raises ConfigError."""
    listen = config.server.listen
    if config.server.admin_key is None and not is_loopback((split_listen(listen) or ("", 0))[0]):
        raise ConfigError([NO_ADMIN_KEY.format(listen)], source)


def split_listen(listen: str) -> tuple[str, int] | None:
    """Split `HOST:PORT` (`[::1]:4000` for IPv6); None when it is not that."""
    host, _, port = listen.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        return None
    return host, int(port)


def _server(config: Config) -> Iterator[str]:
    server = config.server
    if not split_listen(server.listen):
        yield f"`server.listen` must be HOST:PORT with a port of 0 to 65535; it is `{server.listen[:80]}`"
    if server.public_url and not _is_http(server.public_url):
        yield "`server.public_url` must be an http:// or https:// address"
    for at, proxy in enumerate(server.trusted_proxies):
        try:
            ipaddress.ip_network(proxy, strict=False)
        except ValueError:
            shown = proxy[:80]
            yield f"`server.trusted_proxies[{at}]` must be an address or a network as 10.0.0.0/8; it is `{shown}`"
    if config.media.proxy and not _is_http(config.media.proxy.reveal()):
        yield "`media.proxy` must be an http:// or https:// address"


def _storage(config: Config) -> Iterator[str]:
    storage = config.storage
    for name, schemes in SCHEMES.items():
        value: Secret | None = getattr(storage, name)
        if value and value.reveal().partition("://")[0].partition("+")[0] not in schemes:
            yield f"`storage.{name}` must begin with {' or '.join(f'{scheme}://' for scheme in schemes)}"
        elif value and not _has_place(value.reveal()):
            yield f"`storage.{name}` must be {schemes[0]}://{PLACES[name]}; a part of it cannot be read"
    if storage.database and storage.database.reveal().startswith("postgres") and not config.server.secret:
        yield "`server.secret` is required with PostgreSQL: all replicas sign links and check keys with it"


def _has_place(url: str) -> bool:
    """Tell whether what follows the scheme can be read as host and port."""
    try:
        port = urlsplit(url).port
    except ValueError:
        return False
    return port is None or port > 0


def _providers(config: Config) -> Iterator[str]:
    for name, provider in config.providers.items():
        path = join("providers", name)
        if ":" in name or "/" in name or not name:
            yield f"`{path}`: a provider's name holds no colon and no slash"
        sides = [(join(path, side), getattr(provider, side)) for side in ("chat", "image", "video")]
        for where, part in [(path, provider), *sides]:
            if part and part.base_url:
                yield from _address(f"{where}.base_url", part.base_url)


def _address(path: str, url: str) -> Iterator[str]:
    parts = urlsplit(url) if _is_http(url) else None
    if not parts:
        yield f"`{path}` must be an http:// or https:// address"
    elif parts.username is not None or parts.password is not None:
        yield f"`{path}` must not hold a name or password: addresses are shown; use api_key or headers"
    elif parts.query or parts.fragment:
        yield f"`{path}` must end with its path: what follows a `?` belongs into a part's `path`"


def _targets(path: str, alias: Alias, states: Mapping[str, State]) -> Iterator[str]:
    for at, item in enumerate(alias.targets):
        where = f"{path}.targets[{at}]"
        text = item.target if isinstance(item, AliasTarget) else item
        parts = split_target(text)
        if not parts:
            yield f"`{where}` must be provider:model or provider:*; it is `{text[:80]}`"
        elif parts[0] not in states:
            on = [name for name, state in states.items() if state.on]
            yield f"unknown provider in {not_one_of(where, parts[0], on)}"
        elif not states[parts[0]].on:
            yield f"`{where}` names the provider `{parts[0]}`, which is off: {states[parts[0]].why}"


def _meanings(config: Config) -> Iterator[str]:
    table = RoutingTable.build(config.providers, config.models)
    for name, alias in config.models.items():
        path = join("models", name)
        try:
            table.route(name)
        except UnknownModelError as error:
            if alias.targets:
                yield f"`{path}.targets`: {error}"
            elif not is_pattern(name):
                yield f"`{path}.targets` is missing: no provider that is on has a model of this name"
        if alias.task_model:
            try:
                kind = table.route(alias.task_model).kind
            except UnknownModelError as error:
                yield f"`{path}.task_model`: {error}"
            else:
                if kind != "text":
                    yield f"`{path}.task_model` is `{alias.task_model}`, which makes {kind}s; it must be a text model"


def _warnings(config: Config) -> Iterator[str]:
    host = (split_listen(config.server.listen) or ("", 0))[0]
    if not config.providers:
        yield "no provider is on: no model can be asked"
    if not is_loopback(host) and config.keys.required is False:
        yield "`keys.required` is false on an address others can reach: anyone may spend your providers' credit"
    for name, alias in config.models.items():
        weights = any(isinstance(item, AliasTarget) and item.weight != 1 for item in alias.targets)
        if weights and alias.strategy != "weighted":
            yield f'`{join("models", name)}`: weights count only under strategy = "weighted"'


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
