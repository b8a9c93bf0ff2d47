"""Whether a name or an address is this machine's own."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host (a name or an address, without a port)."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
