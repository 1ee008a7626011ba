"""What the doctor says where TLS fails: real certificates, on loopback."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.doctor.test_judgement import only
from tests.doctor.ward import examined

from glassloop.doctor.findings import Report
from glassloop.testing.server import ChatServer, says

DAY = timedelta(days=1)
ANSWER = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


def certificate(folder: Path, begins: timedelta, ends: timedelta) -> Path:
    """Of an issuer that nobody knows, as a company proxy's is, valid from and until these, from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Inspecting Proxy CA")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


def report_of(file: Path, scheme: str, *, trusted: bool) -> Report:
    """The doctor's report on a TLS server that is asked with `scheme`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(ANSWER)
        writer.close()

    async def examine_it() -> Report:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(file)
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with server:
            return await examined(url, only("plain"), **({"ca": str(file)} if trusted else {}))

    return asyncio.run(examine_it())


def causes(report: Report) -> dict[str, str]:
    return {one.code: one.fix for one in report.diagnoses}


def test_a_certificate_of_an_unknown_issuer_is_told_as_interception(tmp_path: Path) -> None:
    report = report_of(certificate(tmp_path, -DAY, DAY), "https", trusted=False)
    assert report.verdict == "unusable"
    found = causes(report)
    assert list(found) == ["tls_interception"]
    assert "SSL_CERT_FILE=" in found["tls_interception"]


@pytest.mark.parametrize(("begins", "ends"), [(-2 * DAY, -DAY), (DAY, 2 * DAY)], ids=["expired", "to_come"])
def test_a_certificate_of_another_time_is_told_as_a_wrong_clock(
    tmp_path: Path, begins: timedelta, ends: timedelta
) -> None:
    report = report_of(certificate(tmp_path, begins, ends), "https", trusted=True)
    assert report.verdict == "unusable"
    found = causes(report)
    assert list(found) == ["clock_skew"]
    assert "set-ntp" in found["clock_skew"]


def test_http_asked_of_a_server_that_speaks_tls_is_told(tmp_path: Path) -> None:
    report = report_of(certificate(tmp_path, -DAY, DAY), "http", trusted=True)
    assert report.verdict == "unusable"
    found = causes(report)
    assert list(found) == ["http_for_https"]
    assert "https://127.0.0.1" in found["http_for_https"]


def test_https_asked_of_a_server_that_speaks_plainly_is_told() -> None:
    async def examine_it() -> Report:
        async with ChatServer([says("Hello")]) as server:
            return await examined(server.base_url.replace("http://", "https://"), only("plain"))

    report = asyncio.run(examine_it())
    assert report.verdict == "unusable"
    found = causes(report)
    assert list(found) == ["https_for_http"]
    assert "http://127.0.0.1" in found["https_for_http"]
