"""Images of a registry: pulled by digest, never believed, and missed in plain words."""

import hashlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_folder, make_tar
from tests.serving import QuietHandler, serving

from tfwright.doctor import images
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ImageTable, Recipe
from tfwright.errors import HostError, SupplyError
from tfwright.tools.container import engine, image, registry
from tfwright.tools.container.image import KeptImage

DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
NAME = "registry.example/library/small"
SKOPEO = """\
for last; do :; done
case "$*" in
"copy "*) mkdir ${last#dir:}; cp FOLDER/* ${last#dir:}; cd ${last#dir:}; echo 1 > version
    source=${*#*@sha256:}; mv ${source%% *} manifest.json;;
*) cat FOLDER/${last#*@sha256:} || { echo "reading manifest: manifest unknown" >&2; exit 1; };;
esac
"""
"""What skopeo does, with a folder of blobs for a registry."""


@pytest.fixture
def made(tmp_path: Path) -> KeptImage:
    """Return a small image in a vault."""
    root = make_tar(tmp_path / "root.tar", {"etc/os-release": "NAME="})
    return image.import_tar(root, tmp_path / "made")


@pytest.fixture
def offered(tmp_path: Path, made: KeptImage, programs: Callable[..., None]) -> Path:
    """Offer an image in a registry; return the folder of its blobs."""
    blobs = make_folder(tmp_path / "registry")
    for blob in made.blobs():
        shutil.copy(blob, blobs)
    programs(skopeo=SKOPEO.replace("FOLDER", str(blobs)))
    return blobs


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def listing(made: KeptImage) -> bytes:
    """Return a list of manifests, of which one is for this machine."""
    own = {"architecture": image.MACHINES["x86_64"], "os": "linux"}
    entries = [
        {"digest": "sha256:" + "0" * 64, "platform": {"architecture": "s390x", "os": "linux"}},
        {"digest": made.digest, "platform": own, "mediaType": made.manifest.kind, "size": 1},
    ]
    described = {"schemaVersion": 2, "mediaType": image.INDEX_TYPE, "manifests": entries}
    return json.dumps(described).encode()


@pytest.mark.usefixtures("offered")
def test_an_image_is_pulled_by_its_digest(made: KeptImage, tmp_path: Path) -> None:
    pulled = registry.pull(NAME, made.digest, tmp_path / "vault")
    assert pulled == image.find_image(tmp_path / "vault", made.digest)
    assert pulled.config == made.config
    assert [path.name for path in (tmp_path / "vault/images").iterdir()] == [made.digest[7:]]


def test_of_a_list_the_manifest_for_this_machine_is_taken(
    made: KeptImage, offered: Path, tmp_path: Path
) -> None:
    listed = listing(made)
    (offered / digest_of(listed)[7:]).write_bytes(listed)
    pulled = registry.pull(NAME, digest_of(listed), tmp_path / "vault")
    assert (pulled.digest, pulled.config) == (digest_of(listed), made.config)


@pytest.mark.parametrize("damage", ["layer", "no layer", "manifest", "no manifest"])
def test_a_registry_that_lies_gives_nothing_to_the_vault(
    made: KeptImage, offered: Path, tmp_path: Path, damage: str
) -> None:
    layer = "layer" in damage
    blob = offered / (made.manifest.parts[1] if layer else made.digest).removeprefix("sha256:")
    blob.chmod(0o600)
    blob.write_bytes(b"other bytes")
    if damage.startswith("no "):
        blob.unlink()
    with fails(SupplyError):
        registry.pull(NAME, made.digest, tmp_path / "vault")
    assert list((tmp_path / "vault/images").iterdir()) == []


def test_what_skopeo_fails_with_is_said(
    made: KeptImage, offered: Path, tmp_path: Path, programs: Callable[..., None]
) -> None:
    asking = f"cat {offered}/{made.digest[7:]}"
    programs(skopeo=f'case "$*" in *copy*) echo no space for blobs; exit 1;; *) {asking};; esac')
    with fails(SupplyError, NAME, "no space for blobs"):
        registry.pull(NAME, made.digest, tmp_path / "vault")


def test_a_name_without_a_registry_is_never_asked_for(tmp_path: Path) -> None:
    assert not registry.names_registry("debian-bullseye")
    assert not registry.names_registry("someone/image")
    with fails(SupplyError, "sha256:" + "0" * 64):
        registry.pull("debian-bullseye", "sha256:" + "0" * 64, tmp_path)


def recipe_with(name: str, digest: str) -> Recipe:
    demo = recipes.read("demo")
    host = demo.host.changed(image=ImageTable(name=name, digest=digest))
    return demo.changed(host=host)


def reported(name: str, digest: str, build_out: Path) -> Mapping[str, str]:
    """Return what doctor says of an image: the words, and the stage that is blocked."""
    found = images.findings(recipe_with(name, digest), HostFile(build_out=build_out))
    return {finding.found: finding.blocks for finding in found if finding.found != "no podman"}


def test_doctor_says_when_a_registry_has_lost_the_image(
    made: KeptImage, offered: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert reported(NAME, made.digest, out) == {"the container image is not here yet": ""}
    registry.pull(NAME, made.digest, out / "vault")
    assert reported(NAME, made.digest, out) == {}
    shutil.rmtree(offered)
    assert reported(NAME, made.digest, out) == {"the image is gone from its registry": ""}
    shutil.rmtree(out / "vault")
    ((found, blocks),) = reported(NAME, made.digest, out).items()
    assert "manifest unknown" in found
    assert blocks == "check"


def test_doctor_says_when_a_registry_does_not_answer(
    programs: Callable[..., None], tmp_path: Path
) -> None:
    programs(skopeo="echo connection refused >&2; exit 1")
    (found,) = reported(NAME, "sha256:" + "0" * 64, tmp_path)
    assert "connection refused" in found


@pytest.mark.usefixtures("no_programs")
def test_skopeo_is_missed_before_a_pull(
    programs: Callable[..., None], made: KeptImage, tmp_path: Path
) -> None:
    programs()
    assert "no skopeo" in reported(NAME, made.digest, tmp_path)
    with fails(HostError, "skopeo"):
        registry.pull(NAME, made.digest, tmp_path / "vault")


# A real skopeo


@pytest.fixture
def served() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Serve what a test puts in, by its path; yield the registry's name, too."""
    if not shutil.which("skopeo"):
        pytest.skip("skopeo is not installed")
    content: dict[str, bytes] = {"/v2/": b"{}"}

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            body = content.get(self.path)
            self.send_response(404 if body is None else 200)
            if body and "/manifests/" in self.path:
                self.send_header("Content-Type", json.loads(body)["mediaType"])
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        do_HEAD = do_GET

    with serving(Handler) as address:
        yield f"{address.removeprefix('http://')}/library/small", content


def offer(content: dict[str, bytes], given: KeptImage) -> None:
    """Put an image into a registry."""
    for blob in given.blobs():
        for kind in ("manifests", "blobs"):
            content[f"/v2/library/small/{kind}/sha256:{blob.name}"] = blob.read_bytes()


@pytest.mark.medium
def test_skopeo_gives_what_a_registry_has_by_digest(
    made: KeptImage, served: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    name, content = served
    offer(content, made)
    listed = listing(made)
    content[f"/v2/library/small/manifests/{digest_of(listed)}"] = listed
    for digest in (made.digest, digest_of(listed)):
        assert registry.pull(name, digest, tmp_path / "vault").config == made.config
    assert registry.ask(name, made.digest)[0] == "there"
    layer = f"/v2/library/small/blobs/{made.manifest.parts[1]}"
    content[layer] = b"X" * len(content[layer])
    with fails(SupplyError, name):
        registry.pull(name, made.digest, tmp_path / "other")
    content.clear()
    assert registry.ask(name, made.digest)[0] != "there"


@pytest.fixture
def real_registry(tmp_path: Path) -> Iterator[str]:
    """Run the registry of the distribution project on loopback; yield its address."""
    program = shutil.which("docker-registry") or shutil.which("registry")
    if program is None:
        pytest.skip("docker-registry is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "store")}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
    (tmp_path / "registry.yml").write_text(json.dumps(settings), "utf-8")
    argv = (program, "serve", str(tmp_path / "registry.yml"))
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
        server.terminate()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["oci", "v2s2"])
def test_a_real_registry_gives_what_podman_pushed(
    made: KeptImage, real_registry: str, tmp_path: Path, form: str
) -> None:
    if not engine.is_installed("podman"):
        pytest.skip("podman is not installed")
    engine.load(made, tmp_path)
    name, kept = f"{real_registry}/library/small", tmp_path / "digest"
    argv = (
        "podman",
        "push",
        "--tls-verify=false",
        f"--format={form}",
        f"--digestfile={kept}",
        made.config.removeprefix("sha256:"),
        f"docker://{name}:1",
    )
    subprocess.run(argv, check=True, capture_output=True)
    pulled = registry.pull(name, kept.read_text("ascii"), tmp_path / "vault")
    assert (pulled.manifest.kind == DOCKER) == (form == "v2s2")
    room = make_folder(tmp_path / "room")
    subprocess.run(("podman", "rmi", "--force", made.config[7:]), check=True, capture_output=True)
    engine.load(pulled, room)
    loaded = subprocess.run(
        ("podman", "image", "inspect", pulled.config[7:]), check=True, capture_output=True
    )
    assert loaded.returncode == 0
    subprocess.run(("podman", "rmi", "--force", pulled.config[7:]), check=True, capture_output=True)
