"""Which URLs are taken and which addresses connected to. Bad inputs 32 to 37 of the security contract, and more."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassloop.core.errors import ConfigError
from glassloop.tools.builtin.web_address import (
    AddressRefused,
    AddressRule,
    checked_url,
    host_of,
    is_public,
    unwrapped,
)
from glassloop.tools.builtin.web_client import system_resolver

NOT_PUBLIC = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24
    192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
    ::/96 ::1/128 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/32 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 fc00::/7
    fe80::/10 fec0::/10 ff00::/8
""".split()
PUBLIC = "1.1.1.1 8.8.8.8 93.184.216.34 172.32.0.1 192.169.0.1 2606:4700::1111 2001:4860:4860::8888 2a00:1450::1".split()

# Spellings that resolvers take for an address of this machine or a metadata service.
SPELLINGS = """
    http://127.0.0.1 http://127.1 http://2130706433 http://0x7f.1 http://0x7f000001 http://0177.0.0.1 http://0 http://0.0.0.0
    http://[::1] http://[::] http://[::ffff:127.0.0.1] http://[::ffff:7f00:1] http://[::ffff:169.254.169.254]
    http://[64:ff9b::7f00:1] http://[::127.0.0.1] http://[2002:7f00:1::] http://[fd00::1] http://[fe80::1]
    http://①②⑦.⓪.⓪.① http://１２７.０.０.１ http://127。0。0。1 http://169.254.169.254/latest/meta-data http://2852039166
    http://100.64.0.1 http://100.100.100.200 http://10.0.0.1 http://192.168.0.1 http://localhost http://LOCALHOST.
    http://127.0.0.1#@good.example http://127.0.0.1?@good.example https://127.0.0.1:443/ http://255.255.255.255
""".split()

NO_URL = [
    "file:///etc/passwd",
    "gopher://example.com/",
    "ftp://example.com/",
    "data:text/html,hello",
    "unix:/run/docker.sock",
    "http+unix://%2Frun%2Fdocker.sock/",
    "javascript:alert(1)",
    "ws://example.com/",
    "example.com",
    "//example.com/",
    "",
    "http://",
    "http:///path",
    "http:example.com",
    "http://good.example@127.0.0.1/",
    "http://user:password@example.com/",
    "http://@example.com/",
    "http://example.com\\@127.0.0.1/",
    "http:\\\\example.com/",
    "http://exa\tmple.com/",
    "http://example.com/\nHost: other",
    "http://example.com/\r\nX: y",
    "http://example.com/\x00",
    "http://exam ple.com/",
    "http://example.com:0/",
    "http://example.com:99999/",
    "http://example.com:port/",
    "http://[::1/",
    "http://[zz]/",
    "http://exam\u00adple.com/",
    "http://\ud800.example/",
    "http://example.com/" + "a" * 5_000,
]


@pytest.mark.parametrize("url", NO_URL)
def test_what_is_no_plain_web_address_is_refused_by_its_text(url: str) -> None:
    with pytest.raises(AddressRefused):
        checked_url(url)


async def _refused(url: str) -> str:
    checked = checked_url(url)
    with pytest.raises(AddressRefused, match="is no public address") as refused:
        AddressRule().permitted(checked, await system_resolver(host_of(checked), checked.port or 0))
    return str(refused.value)


@pytest.mark.parametrize("url", SPELLINGS)
def test_an_address_of_ones_own_network_is_refused_however_it_is_spelled(url: str) -> None:
    assert "web_allow" in asyncio.run(_refused(url))


@given(st.sampled_from(NOT_PUBLIC).map(ip_network), st.floats(0, 1))
def test_no_address_of_a_special_network_is_public(special: IPv4Network | IPv6Network, where: float) -> None:
    assert not is_public(special[min(int(where * special.num_addresses), special.num_addresses - 1)])


@pytest.mark.parametrize("network", NOT_PUBLIC)
def test_a_special_network_is_not_public_at_either_end(network: str) -> None:
    special = ip_network(network)
    assert not is_public(special[0])
    assert not is_public(special[-1])


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@given(st.ip_addresses(v=4))
def test_an_address_wrapped_into_another_is_judged_as_what_it_is(address: IPv4Address) -> None:
    wrapped = IPv6Address(f"::ffff:{address}")
    assert unwrapped(wrapped) == address
    assert is_public(wrapped) == is_public(address)


@given(st.ip_addresses(v=6))
def test_what_the_library_calls_private_is_never_public(address: IPv6Address) -> None:
    if address.ipv4_mapped is None:
        assert not (
            is_public(address) and (address.is_private or not address.is_global or address.is_multicast)
        )


@given(st.text(max_size=60))
def test_any_text_is_a_url_with_a_host_or_refused(text: str) -> None:
    for tried in (text, f"http://{text}", f"https://example.com/{text}"):
        try:
            url = checked_url(tried)
        except AddressRefused:
            continue
        assert url.scheme in ("http", "https")
        assert url.host
        assert url.user is None
        assert not url.fragment


@given(st.lists(st.ip_addresses(), max_size=6))
def test_only_addresses_that_were_judged_fine_are_left(addresses: list[IPv4Address | IPv6Address]) -> None:
    url = checked_url("https://good.example/")
    try:
        left = AddressRule().permitted(url, map(str, addresses))
    except AddressRefused:
        left = ()
    assert set(left) == {unwrapped(one) for one in addresses if is_public(one)}


def test_a_name_with_public_and_private_addresses_is_asked_at_the_public_ones() -> None:
    url = checked_url("https://good.example/")
    assert AddressRule().permitted(url, ["10.0.0.1", "8.8.8.8", "fe80::1%eth0"]) == (ip_address("8.8.8.8"),)


@pytest.mark.parametrize("port", [22, 25, 6379, 8080])
def test_other_ports_than_those_of_the_web_are_refused_unless_allowed(port: int) -> None:
    url = checked_url(f"http://good.example:{port}/")
    with pytest.raises(AddressRefused, match=f"port {port} is neither 80 nor 443"):
        AddressRule().permitted(url, ["8.8.8.8"])
    assert AddressRule.from_text(f":{port}").permitted(url, ["8.8.8.8"])
    with pytest.raises(AddressRefused, match="no public address"):
        AddressRule.from_text(f":{port}").permitted(url, ["127.0.0.1"])


# What is allowed, URL, address → whether it may be connected to.
ALLOWED = [
    ("localhost:8080", "http://localhost:8080/", "127.0.0.1", True),
    ("localhost:8080", "http://localhost:8081/", "127.0.0.1", False),
    ("localhost:8080", "http://other.example:8080/", "127.0.0.1", False),
    ("localhost", "http://localhost:3000/", "::1", True),
    ("10.0.0.5", "http://10.0.0.5:9200/", "10.0.0.5", True),
    ("10.0.0.5", "http://intra.example/", "10.0.0.5", True),
    ("10.0.0.5", "http://10.0.0.6/", "10.0.0.6", False),
    ("10.1.0.0/16:443", "https://a.example/", "10.1.2.3", True),
    ("10.1.0.0/16", "https://a.example/", "::ffff:10.1.2.3", True),
    ("[::1]:3000", "http://[::1]:3000/", "::1", True),
    ("::1", "http://[::1]:3000/", "::1", True),
    ("fd00::/8", "http://nas.example/", "fd00::5", True),
    ("fd00::/8", "http://nas.example/", "10.0.0.1", False),
    (" intra.例え.jp , :81", "http://intra.xn--r8jz45g.jp/", "10.0.0.1", True),
]


@pytest.mark.parametrize(("text", "url", "address", "fine"), ALLOWED)
def test_what_the_user_allows_is_allowed_and_nothing_else(
    text: str, url: str, address: str, fine: bool
) -> None:
    checked = checked_url(url)
    why_not = AddressRule.from_text(text).why_not(host_of(checked), checked.port or 0, ip_address(address))
    assert (why_not == "") == fine


@pytest.mark.parametrize(
    "text", ["http://localhost", "a b", "localhost:port", "host:99999", "*", "10.0.0.5/8", "[::1", "a@b"]
)
def test_an_exception_that_is_no_host_is_refused_when_it_is_written(text: str) -> None:
    with pytest.raises(ConfigError, match="web_allow"):
        AddressRule.from_text(text)


@pytest.mark.parametrize(
    "url",
    [url for url in SPELLINGS if "xn--" not in url]
    + ["http://intranet/", "http://nas.local/", "http://a.internal/"],
)
def test_what_the_text_tells_is_refused_also_where_a_proxy_resolves(url: str) -> None:
    with pytest.raises(AddressRefused):
        AddressRule().check_unresolved(checked_url(url))


def test_a_name_on_the_internet_may_be_resolved_by_a_proxy() -> None:
    AddressRule().check_unresolved(checked_url("https://good.example/"))
    AddressRule().check_unresolved(checked_url("https://8.8.8.8/"))
    AddressRule.from_text("intranet").check_unresolved(checked_url("https://intranet/"))
