"""What is said of servers, registries and their clients, done to the letter."""

import hashlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.making import Serve, make_file, make_folder
from tests.remedies.following import failing
from tests.tools import test_registry
from tests.tools.test_registry import package

from tfwright.documents.host_file import HostFile
from tfwright.documents.toml import load
from tfwright.documents.toolkit import PartTable
from tfwright.errors import SupplyError
from tfwright.progress import SILENCE
from tfwright.toolkit import sources
from tfwright.toolkit.sources import Supplier
from tfwright.tools import registry
from tfwright.tools.registry import RegistryPackage

MEMBER = "package/deps/a.tar.gz"


clients = test_registry.clients


@pytest.fixture
def extract(tmp_path: Path) -> Callable[..., None]:
    wanted = RegistryPackage("npm", "a", "1")

    def extracted(member: str = MEMBER) -> None:
        registry.extract(wanted, member, tmp_path / "target")

    return extracted


def test_a_member_of_a_package_is_corrected(
    clients: Path, tmp_path: Path, extract: Callable[..., None]
) -> None:
    brings = f"cp {package(tmp_path / 'p')} x.tgz"
    test_registry.program(clients / "npm", brings)
    failing(lambda: extract("package/a.tar.gz"), SupplyError, "member", "[fetch.sources]")
    extract(MEMBER)
    assert (tmp_path / "target").read_bytes() == b"bytes"


@pytest.mark.parametrize("fault", ["no server", "no interpreter"])
def test_a_client_that_fails_is_asked_for_its_servers(
    clients: Path, tmp_path: Path, extract: Callable[..., None], fault: str
) -> None:
    config = make_file(tmp_path / "npmrc", "http://127.0.0.1:9/")
    npm = f"""\
case "$1" in
config) cat {config};;
*) grep -qs 127 {config} && {{ echo npm error code ECONNREFUSED; exit 1; }}
   cp {package(tmp_path / "p")} x.tgz;;
esac"""
    test_registry.program(clients / "npm", npm)
    if fault == "no interpreter":
        (clients / "npm").write_text("#!/nonexistent/node\n", "utf-8")
    remedy = failing(extract, SupplyError).remedy
    (command,) = re.findall(r"'(npm [^']*)'", remedy)
    if fault == "no interpreter":
        assert remedy.startswith("Check that npm runs")
        test_registry.program(clients / "npm", npm)
    said = subprocess.check_output(shlex.split(command), text=True)
    assert said == "http://127.0.0.1:9/"
    config.write_text("https://registry.example/", "utf-8")
    extract()


def test_a_client_is_installed(
    clients: Path, tmp_path: Path, extract: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = package(tmp_path / "p")
    monkeypatch.setenv("PATH", str(clients))
    fault = failing(extract, SupplyError)
    (name,) = re.findall(r"Install (\w+)\.", fault.remedy)
    test_registry.program(clients / name, f"/bin/cp {made} x.tgz")
    extract()


# Debian's packages


PACKAGE = "libcudnn7_7.6.5-1_amd64.deb"
CONTENT = b"a package, which is not unpacked here"


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    """Return an archive with one package."""
    folder = tmp_path / "debian"
    place = make_folder(folder / "dists/bookworm/main/binary-amd64")
    (folder / PACKAGE).write_bytes(CONTENT)
    listed = (
        "Package: libcudnn7\nVersion: 7.6.5-1\nArchitecture: amd64\n"
        f"Filename: {PACKAGE}\nSize: {len(CONTENT)}\n"
        f"SHA256: {hashlib.sha256(CONTENT).hexdigest()}\n"
    )
    (place / "Packages").write_text(listed, "utf-8")
    digest = hashlib.sha256(listed.encode()).hexdigest()
    (folder / "dists/bookworm/Release").write_text(
        "Suite: bookworm\nCodename: bookworm\nComponents: main\n"
        "Architectures: amd64\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n"
        f" {digest} {len(listed)} main/binary-amd64/Packages\n",
        "utf-8",
    )
    return folder


@pytest.mark.medium
@pytest.mark.skipif(not shutil.which("apt-get"), reason="this host has no apt")
@pytest.mark.parametrize("way", ["debian = 'http://…'", "'drop'"])
def test_packages_come_from_a_mirror_of_debian_or_the_drop_folder(
    debian: Path, serve: Serve, tmp_path: Path, way: str
) -> None:
    pins = {PACKAGE: hashlib.sha256(CONTENT).hexdigest()}
    part = PartTable.model_validate(
        {"debian": {"suite": "bookworm", "files": pins}, "order": ["debian"]}
    )
    path, log = tmp_path / "host.toml", tmp_path / "log"

    def supplier(line: str) -> Supplier:
        path.write_text(line, "utf-8")
        store = sources.store(tmp_path / "vault")
        store.root.mkdir(parents=True, exist_ok=True)
        return Supplier(store, load(path, HostFile), SILENCE, log)

    (tmp_path / "empty").mkdir()
    gone = supplier(f'debian = "{serve(tmp_path / "empty")}"')
    failing(
        lambda: gone.download_packages("debian", part, pins, tmp_path / "room"), SupplyError, way
    )
    line = way.replace("http://…", serve(debian))
    if way == "'drop'":
        line = f'drop = "{debian}"'
    (found,) = supplier(line).obtain("cuDNN", part).files
    assert found.read_bytes() == CONTENT
