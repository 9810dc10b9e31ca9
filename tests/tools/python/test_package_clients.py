import pytest

from tfwright.errors import Evidence, SilentServerError, SupplyError, ToolError
from tfwright.tools.python import package_clients

UNREACHED = "WARNING: Retrying after connection broken by 'NewConnectionError'"
ABSENT = "ERROR: No matching distribution found for absent==1.0"


@pytest.mark.parametrize(
    ("line", "kind", "remedy"),
    [
        (UNREACHED, SilentServerError, "Check how pip reaches its index: "),
        (ABSENT, SupplyError, "Pin a version, and a checksum if any, "),
    ],
)
def test_an_index_that_is_not_reached_is_told_from_one_that_lacks_a_pin(
    line: str, kind: type[SupplyError], remedy: str
) -> None:
    fault = ToolError("pip failed", remedy="-", evidence=Evidence(lines=(line,)))
    assert package_clients.error_kind(fault) is kind
    assert package_clients.pip_remedy(fault, line).startswith(remedy)


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_a_client_gets_the_proxy_in_both_spellings_and_its_own_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.org:3128")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example.org/simple")
    monkeypatch.setenv("npm_config_registry", "https://npm.example.org")
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/company.pem")
    monkeypatch.delenv("NODE_EXTRA_CA_CERTS", raising=False)
    given = package_clients.client_environment("pip")
    assert given["https_proxy"] == "http://proxy.example.org:3128"
    assert given["HTTPS_PROXY"] == "http://proxy.example.org:3128"
    assert given["NODE_EXTRA_CA_CERTS"] == "/etc/company.pem"
    assert given["PIP_INDEX_URL"] == "https://index.example.org/simple"
    assert not {"http_proxy", "npm_config_registry"} & given.keys()


def test_the_proxy_for_all_schemes_stands_in_for_those_that_are_not_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://every.example.org:3128")
    monkeypatch.setenv("http_proxy", "http://one.example.org:3128")
    assert package_clients.proxy_variables() == {
        "http_proxy": "http://one.example.org:3128",
        "HTTP_PROXY": "http://one.example.org:3128",
        "https_proxy": "http://every.example.org:3128",
        "HTTPS_PROXY": "http://every.example.org:3128",
    }
