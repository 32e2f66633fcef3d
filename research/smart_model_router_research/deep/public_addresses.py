"""The addresses that a fetch may connect to: those of the public Internet, by one table of its own.

`ipaddress.is_global` differs between versions of Python, and calls some addresses global that lead back inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from types import MappingProxyType

_IPV4 = """
0.0.0.0/8 | this network (RFC 791)
10.0.0.0/8 | private (RFC 1918)
100.64.0.0/10 | carriers' own, and the metadata of Alibaba Cloud (RFC 6598)
127.0.0.0/8 | this machine (RFC 1122)
168.63.129.16/32 | the host of a virtual machine of Azure
169.254.0.0/16 | link-local, and the metadata of most clouds (RFC 3927)
172.16.0.0/12 | private (RFC 1918)
192.0.0.0/24 | assignments of the IETF (RFC 6890)
192.0.2.0/24 | documentation (RFC 5737)
192.88.99.0/24 | relays of 6to4 (RFC 7526)
192.168.0.0/16 | private (RFC 1918)
198.18.0.0/15 | benchmarks (RFC 2544)
198.51.100.0/24 | documentation (RFC 5737)
203.0.113.0/24 | documentation (RFC 5737)
224.0.0.0/4 | multicast (RFC 5771)
240.0.0.0/4 | reserved, and the broadcast (RFC 1112)
"""
_IPV6 = """
2001::/23 | assignments of the IETF, Teredo among them (RFC 2928)
2001:db8::/32 | documentation (RFC 3849)
2002::/16 | 6to4, which carries an address of IPv4 (RFC 3056)
3fff::/20 | documentation (RFC 9637)
"""


def _rows(table: str) -> list[tuple[str, str]]:
    return [(network, reason) for network, _, reason in (row.partition(" | ") for row in table.strip().split("\n"))]


IPV4_REFUSED: Mapping[IPv4Network, str] = MappingProxyType(
    {IPv4Network(network): reason for network, reason in _rows(_IPV4)}
)
"""The networks of IPv4 that are not public, and why."""
IPV6_PUBLIC = IPv6Network("2000::/3")
"""The only part of IPv6 that is given to the public Internet: all else is refused, what is assigned later included."""
IPV6_REFUSED: Mapping[IPv6Network, str] = MappingProxyType(
    {IPv6Network(network): reason for network, reason in _rows(_IPV6)}
)
"""The networks inside of it that are not public, and why."""


def is_public_address(ip: str) -> bool:
    """Return whether an address is one of the public Internet.

    `ip` is an address as a resolver gives it. Anything else is not public: a name, another spelling of an address
    (octal, hexadecimal, short), one with a zone, and every form of IPv6 that carries an address of IPv4.
    """
    return not refusal_of_address(ip)


def refusal_of_address(ip: str) -> str:
    """Return why an address is not public; "" for one that is."""
    try:
        address = ip_address(ip)
    except ValueError:
        return "it is no address"
    if isinstance(address, IPv6Address):
        if address.scope_id is not None or address not in IPV6_PUBLIC:
            return "it is outside of 2000::/3, the public part of IPv6"
        return next((reason for network, reason in IPV6_REFUSED.items() if address in network), "")
    return next((reason for network, reason in IPV4_REFUSED.items() if address in network), "")
