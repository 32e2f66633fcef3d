"""Addresses that a fetch may connect to: one table, tried with every form that an address can be written in."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_research.deep import is_public_address
from smart_model_router_research.deep.public_addresses import IPV4_REFUSED, IPV6_REFUSED, refusal_of_address

INSIDE = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.254
168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1
192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1
255.255.255.255
:: ::1 ::7f00:1 ::127.0.0.1 ::93.184.216.34 ::ffff:10.0.0.1 ::ffff:93.184.216.34 ::ffff:0:127.0.0.1 64:ff9b::7f00:1
64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 2001::1 2001:0:7f00:1:: 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::
2002:808:808::1 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fd20:ce::254 fe80::1 fe80::1%eth0 fe80::1%1 febf::1 fec0::1
ff02::1 ff0e::1 4000::1 2606:4700::1111%eth0
"""
PUBLIC = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 93.184.216.34 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 168.63.129.15
168.63.129.17 169.253.255.255 169.255.0.1 172.15.255.255 172.32.0.1 192.0.1.1 192.88.98.255 192.167.255.255 198.17.0.1
198.20.0.1 223.255.255.255 2001:200::1 2001:4860:4860::8888 2606:4700:4700::1111 2a00:1450:4001::1 2620:fe::fe
"""
OTHER_SPELLINGS = ["2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "127.0.1", "017700000001", "0"]


@pytest.mark.parametrize("ip", INSIDE.split())
def test_what_leads_inside_is_refused(ip: str) -> None:
    """Private, shared, link-local, metadata, multicast, reserved, and every form that carries another address."""
    assert not is_public_address(ip)
    assert refusal_of_address(ip)


@pytest.mark.parametrize("ip", PUBLIC.split())
def test_what_is_public_passes(ip: str) -> None:
    """Also the first and the last address beside each network that is refused."""
    assert is_public_address(ip)


@pytest.mark.parametrize("spelling", OTHER_SPELLINGS)
def test_another_spelling_is_judged_by_what_it_resolves_to(spelling: str) -> None:
    """It is no address as it stands, and the system's resolver makes one of it that is refused."""
    assert not is_public_address(spelling)
    assert not is_public_address(socket.inet_ntoa(socket.inet_aton(spelling)))  # as getaddrinfo reads it


NO_ADDRESSES = ["", "example.org", "8.8.8.8.", " 8.8.8.8", "8.8.8", "8.8.8.8/32", "[::1]", "\u0661.1.1.1"]


@pytest.mark.parametrize("text", NO_ADDRESSES)
def test_what_is_no_address_is_refused(text: str) -> None:
    """A resolver gives nothing of the kind."""
    assert not is_public_address(text)


@given(st.sampled_from(sorted(IPV4_REFUSED, key=str)), st.integers(0, 2**32 - 1))
def test_every_address_of_a_refused_network_is_refused(network: object, number: int) -> None:
    """And so is every way to carry it in an address of IPv6."""
    base = int(network.network_address)  # type: ignore[attr-defined]
    inside = IPv4Address(base | (number & int(network.hostmask)))  # type: ignore[attr-defined]
    carried = [
        IPv6Address(int(inside)),
        IPv6Address(0xFFFF << 32 | int(inside)),
        IPv6Address((0x64FF9B << 96) | int(inside)),
        IPv6Address((0x2002 << 112) | (int(inside) << 80)),
        IPv6Address((0x20010000 << 96) | (int(inside) ^ 0xFFFFFFFF)),
    ]
    assert not any(is_public_address(str(each)) for each in (inside, *carried))


@given(st.integers(0, 2**128 - 1))
def test_an_address_of_ipv6_is_public_only_where_it_was_assigned(number: int) -> None:
    """Nothing outside of 2000::/3 passes, nor anything of a refused network in it."""
    address = IPv6Address(number)
    is_inside = number >> 125 == 1 and not any(address in network for network in IPV6_REFUSED)
    assert is_public_address(str(address)) is is_inside


@given(st.integers(0, 2**32 - 1))
def test_what_the_table_lets_through_is_global_for_python_too(number: int) -> None:
    """The table is stricter than `ipaddress`, never laxer."""
    address = IPv4Address(number)
    if is_public_address(str(address)):
        assert address.is_global
