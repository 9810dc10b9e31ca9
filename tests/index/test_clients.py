"""Real pip and real uv install from the index, served by `invoke index --serve` and by nginx."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import requests
from tests.making import make_file, make_folder
from tests.nightly.wheels import write_wheel

from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ROOT
from tfwright.host import pythons
from tfwright.index import serving, write
from tfwright.index.serving import IndexPlace
from tfwright.tools.http import server

pytestmark = pytest.mark.real

REASON = "built with a broken compiler"
UV = os.environ.get("UV", "uv")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    packages = folder / "packages"
    for version in ("1.0", "1.1", "1.1+cpu", "1.2"):
        write_wheel(packages, version=version, tag="py2.py3-none-any")
    oldest = packages / "demo-1.0-py2.py3-none-any.whl"
    write_wheel(packages, version="2.0", tag="py2.py3-none-any", requires_python=">=3.99")
    yanked = write_wheel(packages, version="1.3", tag="py2.py3-none-any")
    notes = {yanked.name: {"yanked": REASON}, oldest.name: {"recipe": "old"}}
    write.refresh(folder, notes)
    return folder


@pytest.fixture(scope="module", params=["invoke", "nginx"])
def url(
    request: pytest.FixtureRequest, site: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    scratch = tmp_path_factory.mktemp("served")
    with server.listening(site) as probe:
        port = int(probe.server_address[1])
    if request.param == "invoke":
        argv = [sys.executable, "-m", "invoke", "index", "--serve", "--folder", str(site)]
        argv += ["--port", str(port)]
    else:
        argv = nginx_command(site, port, scratch)
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/"
    wait_for(address + "simple/")
    yield address
    process.terminate()
    process.wait(10)


def nginx_command(site: Path, port: int, scratch: Path) -> list[str]:
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if program is None:
        pytest.skip("nginx is not installed")
    (scratch / "site.conf").write_text(
        serving.nginx_configuration(IndexPlace(site, "packages"), port, "localhost")
    )
    # pytest's folders belong to this user only.
    user = "user root; " if os.getuid() == 0 else ""
    (scratch / "nginx.conf").write_text(
        f"{user}daemon off; pid {scratch}/pid; error_log stderr;"
        f"events {{}} http {{ access_log off; include {scratch}/site.conf; }}"
    )
    return [program, "-c", str(scratch / "nginx.conf"), "-p", str(scratch), "-e", "stderr"]


def wait_for(address: str) -> None:
    for _ in range(100):
        try:
            requests.get(address, timeout=2)
        except requests.ConnectionError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"nothing answers at {address}")


def clean_environment(home: Path) -> Mapping[str, str]:
    # The caller's pip.conf and uv.toml may name other indexes.
    named = {"HOME": str(home), "PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull}
    return {**named, "UV_NO_CONFIG": "1", "UV_CACHE_DIR": str(home / "uv-cache")}


class Client:
    """pip of one Python in a fresh venv, or uv."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.environment = clean_environment(folder)
        version = kind.removeprefix("pip ") if kind.startswith("pip ") else "3.11"
        interpreter = pythons.find(version, HostFile())
        if interpreter is None:
            pytest.skip(f"Python {version} is not installed")
        if kind == "uv" and not shutil.which(UV):
            pytest.skip("uv is not installed")
        venv = [str(interpreter), "-m", "venv", str(folder / "venv")]
        subprocess.run(venv, check=True, capture_output=True)
        self.python = folder / "venv/bin/python"

    def install(
        self, url: str, *what: str, index: str = "simple/"
    ) -> subprocess.CompletedProcess[str]:
        if self.kind == "uv":
            argv = [UV, "pip", "install", "--python", str(self.python), "--no-cache"]
            argv += ["--index-url", url + index, *what]
        else:
            argv = [str(self.python), "-m", "pip", "--disable-pip-version-check", "install"]
            argv += ["--no-cache-dir", "--index-url", url + index, *what]
        return subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, check=False
        )

    def version(self) -> str:
        found = list((self.folder / "venv").glob("lib/python*/site-packages/demo-*.dist-info"))
        return found[0].name.removesuffix(".dist-info").removeprefix("demo-") if found else ""


@pytest.fixture(params=["pip 3.6", "pip 3.11", "uv"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    return Client(request.param, tmp_path)


@pytest.mark.parametrize(
    ("what", "index", "version"),
    [
        (("demo",), "simple/", "1.2"),
        (("--only-binary", ":all:", "demo"), "simple/", "1.2"),
        (("demo==1.1+cpu",), "simple/", "1.1+cpu"),
        (("demo",), "r/old/", "1.0"),
    ],
    ids=["the newest that fits", "only wheels", "an exact pin", "a recipe's own index"],
)
def test_the_wheel_that_is_asked_for_is_installed(
    client: Client, url: str, what: tuple[str, ...], index: str, version: str
) -> None:
    ended = client.install(url, *what, index=index)
    assert ended.returncode == 0, ended.stderr
    # pip of Python 3.6 comes from before yanking, and takes 1.3.
    yanked = client.kind == "pip 3.6" and version == "1.2"
    assert client.version() == ("1.3" if yanked else version)


def test_a_hash_is_required_and_compared(client: Client, url: str, site: Path) -> None:
    wheel = site / "packages/demo-1.0-py2.py3-none-any.whl"
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    wanted = make_file(client.folder / "requirements.txt", f"demo==1.0 --hash=sha256:{'0' * 64}\n")
    assert client.install(url, "--require-hashes", "-r", str(wanted)).returncode != 0
    wanted.write_text(f"demo==1.0 --hash=sha256:{right}\n")
    ended = client.install(url, "--require-hashes", "-r", str(wanted))
    assert ended.returncode == 0, ended.stderr
    assert client.version() == "1.0"


def test_a_yanked_wheel_comes_only_by_its_exact_version(client: Client, url: str) -> None:
    ended = client.install(url, "demo==1.3")
    assert ended.returncode == 0, ended.stderr
    assert client.version() == "1.3"
    if client.kind != "pip 3.6":
        assert REASON in ended.stderr + ended.stdout


def test_a_wheel_is_kept_for_ever_and_its_absence_is_not(url: str) -> None:
    there, absent = (
        requests.get(f"{url}packages/demo-{version}-py2.py3-none-any.whl", timeout=10)
        for version in ("1.2", "9.9")
    )
    assert (there.status_code, absent.status_code) == (200, 404)
    assert "immutable" in there.headers["Cache-Control"]
    assert "immutable" not in absent.headers.get("Cache-Control", "")


def test_metadata_comes_without_the_wheel(tmp_path: Path, url: str) -> None:
    client = Client("pip 3.11", tmp_path)
    upgrade = [str(client.python), "-m", "pip", "install", "-q", "--upgrade", "pip"]
    if subprocess.run(upgrade, capture_output=True, check=False).returncode:
        pytest.skip("no newer pip can be had")
    report = tmp_path / "report.json"
    ended = client.install(url, "--dry-run", "--report", str(report), "demo")
    assert ended.returncode == 0, ended.stderr
    (entry,) = json.loads(report.read_text())["install"]
    assert entry["metadata"]["version"] == "1.2"
    assert "demo-1.2-py2.py3-none-any.whl.metadata" in ended.stdout


def test_uv_locks_to_this_index_and_to_these_bytes(tmp_path: Path, url: str, site: Path) -> None:
    client = Client("uv", tmp_path)
    project = make_folder(tmp_path / "project")
    (project / "pyproject.toml").write_text(
        '[project]\nname = "user"\nversion = "1"\nrequires-python = ">=3.11"\n'
        'dependencies = ["demo==1.1+cpu"]\n'
        f'[[tool.uv.index]]\nname = "tfwright"\nurl = "{url}simple/"\nexplicit = true\n'
        '[tool.uv.sources]\ndemo = { index = "tfwright" }\n'
    )
    environment = dict(client.environment)
    # uv would not read [[tool.uv.index]] otherwise.
    environment.pop("UV_NO_CONFIG")
    argv = [UV, "lock", "--python", str(client.python)]
    ended = subprocess.run(
        argv, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    locked = tomllib.loads((project / "uv.lock").read_text())
    (package,) = [entry for entry in locked["package"] if entry["name"] == "demo"]
    wheel = site / "packages/demo-1.1+cpu-py2.py3-none-any.whl"
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert package["wheels"][0]["hash"] == f"sha256:{digest}"
    assert package["source"] == {"registry": f"{url}simple/"}
    assert package["wheels"][0]["size"] == wheel.stat().st_size


def test_the_formats_are_chosen_by_what_the_client_accepts(url: str) -> None:
    kinds = {}
    for accepted in ("application/vnd.pypi.simple.v1+json", "text/html"):
        answer = requests.get(f"{url}simple/demo/", headers={"Accept": accepted}, timeout=5)
        kinds[accepted] = answer.headers["Content-Type"].partition(";")[0]
        assert answer.headers["Cache-Control"] == "no-cache"
        assert answer.headers["Vary"] == "Accept"
    assert list(kinds) == list(kinds.values())


def test_wheels_are_kept_for_ever_and_come_in_parts(url: str) -> None:
    wheel = f"{url}packages/demo-1.0-py2.py3-none-any.whl"
    answer = requests.get(wheel, headers={"Range": "bytes=0-1"}, timeout=5)
    assert (answer.status_code, answer.content) == (206, b"PK")
    assert "immutable" in answer.headers["Cache-Control"]


@pytest.mark.parametrize("path", ["packages/.catalog.json", ".git/config", "../etc/passwd"])
def test_hidden_files_are_not_served(url: str, path: str) -> None:
    assert requests.get(url + path, timeout=5).status_code in {400, 404}
