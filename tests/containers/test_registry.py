"""Images of a registry: pulled by digest, never believed, and missed in plain words."""

import contextlib
import hashlib
import http.server
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from urllib3 import HTTPResponse

from tfwright.doctor import images
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import ImageTable, Recipe
from tfwright.errors import SupplyError
from tfwright.tools.container import engine, image, registry
from tfwright.tools.container.image import KeptImage

DOCKER = "application/vnd.docker.distribution.manifest.v2+json"


@contextlib.contextmanager
def pouring(status: str) -> Iterator[str]:
    """Serve answers without an end, and without a word of their size; yield an image's name."""

    def pour(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            client.recv(4096)
            challenge = 'WWW-Authenticate: Bearer realm="none"'
            client.sendall(f"HTTP/1.1 {status}\r\n{challenge}\r\n\r\n".encode())
            while True:
                client.sendall(b" " * (1 << 20))

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=pour, args=(client,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve, args=(listener,), daemon=True)
        serving.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}/a/b"
        # Else it could accept what comes to the next test's server, whose descriptor is the same.
        listener.shutdown(socket.SHUT_RDWR)
        serving.join()


@pytest.fixture
def made(tmp_path: Path) -> KeptImage:
    """Return a small image in a vault."""
    root = tmp_path / "root.tar"
    with tarfile.open(root, "w") as archive:
        member = tarfile.TarInfo("etc/os-release")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"NAME="))
    return image.add(root, tmp_path / "made")


@pytest.fixture
def served() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Serve what a test puts in, by its path; yield the registry's name, too."""
    content: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = content.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        do_HEAD = do_GET  # noqa: N815 the library's name

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"127.0.0.1:{server.server_port}/library/small", content
    server.shutdown()
    server.server_close()


def offer(content: dict[str, bytes], given: KeptImage) -> None:
    """Put an image into a registry."""
    for blob in given.blobs():
        for kind in ("manifests", "blobs"):
            content[f"/v2/library/small/{kind}/sha256:{blob.name}"] = blob.read_bytes()


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def test_an_image_is_pulled_by_its_digest(
    made: KeptImage, served: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    name, content = served
    offer(content, made)
    pulled = registry.pull(name, made.digest, tmp_path / "vault")
    assert pulled == image.kept(tmp_path / "vault", made.digest)
    assert pulled.config == made.config
    assert [path.name for path in (tmp_path / "vault/images").iterdir()] == [made.digest[7:]]


def test_of_a_list_the_manifest_for_this_machine_is_taken(
    made: KeptImage, served: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    name, content = served
    offer(content, made)
    own = {"architecture": image.MACHINES["x86_64"], "os": "linux"}
    entries = [
        {"digest": "sha256:" + "0" * 64, "platform": {"architecture": "s390x", "os": "linux"}},
        {"digest": made.digest, "platform": own},
    ]
    listed = json.dumps({"mediaType": image.INDEX_TYPE, "manifests": entries}).encode()
    content[f"/v2/library/small/manifests/{digest_of(listed)}"] = listed
    pulled = registry.pull(name, digest_of(listed), tmp_path / "vault")
    assert pulled.digest == digest_of(listed)
    assert pulled.config == made.config


@pytest.mark.parametrize(
    "status",
    [
        "200 OK",
        "401 Unauthorized",
        "500 Oh",
        "302 Found\r\nLocation: /again",
        "302 Found\r\nLocation: http://[::1",
        "503 Busy\r\nRetry-After: 86400",
        f"503 Busy\r\nRetry-After: {'9' * 5000}",
    ],
    ids=lambda status: status[:30],
)
def test_an_answer_without_an_end_is_left(tmp_path: Path, status: str) -> None:
    with (
        pouring(status) as name,
        pytest.raises(SupplyError, match="cannot be pulled by its digest"),
    ):
        registry.pull(name, "sha256:" + "0" * 64, tmp_path / "vault")
    assert list((tmp_path / "vault/images").iterdir()) == []


def test_an_image_that_does_not_fit_is_not_asked_for(
    made: KeptImage,
    served: tuple[str, dict[str, bytes]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, content = served
    offer(content, made)
    room = os.statvfs(tmp_path)
    monkeypatch.setattr(image, "_stated_size", lambda _: 2 * room.f_blocks * room.f_frsize)
    with pytest.raises(SupplyError, match=r"bytes, and .* are free"):
        registry.pull(name, made.digest, tmp_path / "vault")


@pytest.mark.parametrize("damage", ["other bytes", "missing", "too large"])
def test_a_registry_that_lies_gives_nothing_to_the_vault(
    made: KeptImage, served: tuple[str, dict[str, bytes]], tmp_path: Path, damage: str
) -> None:
    name, content = served
    offer(content, made)
    layer = f"/v2/library/small/blobs/{made.manifest.parts[1]}"
    if damage == "other bytes":
        content[layer] = b"another layer"
    elif damage == "missing":
        del content[layer]
    else:
        content[f"/v2/library/small/manifests/{made.digest}"] = b" " * (5 << 20)
    with pytest.raises(SupplyError, match="cannot be pulled by its digest"):
        registry.pull(name, made.digest, tmp_path / "vault")
    assert list((tmp_path / "vault/images").iterdir()) == []


def test_a_name_without_a_registry_is_never_asked_for(tmp_path: Path) -> None:
    assert registry.place_of("debian-bullseye") is None
    assert registry.place_of("someone/image") is None
    with pytest.raises(SupplyError, match="is not in the vault"):
        registry.pull("debian-bullseye", "sha256:" + "0" * 64, tmp_path)


def test_the_hub_is_asked_by_its_real_name() -> None:
    place = registry.place_of("docker.io/library/debian")
    assert place
    assert place.url("manifests", "D") == (
        "https://registry-1.docker.io/v2/library/debian/manifests/D"
    )


def recipe_with(name: str, digest: str) -> Recipe:
    demo = recipes.read("demo")
    host = demo.host.model_copy(update={"image": ImageTable(name=name, digest=digest)})
    return demo.model_copy(update={"host": host})


def reported(name: str, digest: str, build_out: Path) -> Mapping[str, str]:
    """Return what doctor says of an image: the words, and the stage that is blocked."""
    found = images.findings(recipe_with(name, digest), HostFile(build_out=build_out))
    return {finding.found: finding.blocks for finding in found if finding.found != "no podman"}


def test_doctor_says_when_a_registry_has_lost_the_image(
    made: KeptImage, served: tuple[str, dict[str, bytes]], tmp_path: Path
) -> None:
    name, content = served
    offer(content, made)
    out = tmp_path / "out"
    there = reported(name, made.digest, out)
    assert there == {"the container image is not here yet": ""}
    registry.pull(name, made.digest, out / "vault")
    assert reported(name, made.digest, out) == {}
    content.clear()
    assert reported(name, made.digest, out) == {"the image is gone from its registry": ""}
    shutil.rmtree(out / "vault")
    gone = "no container image; its registry says HTTP 404"
    assert reported(name, made.digest, out) == {gone: "check"}


def test_doctor_says_when_a_registry_does_not_answer(tmp_path: Path) -> None:
    # A port that nothing listens on.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    found = reported(f"127.0.0.1:{port}/a/b", "sha256:" + "0" * 64, tmp_path)
    assert "does not answer" in next(iter(found))


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
    if not engine.installed("podman"):
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
    room = tmp_path / "room"
    room.mkdir()
    subprocess.run(("podman", "rmi", "--force", made.config[7:]), check=True, capture_output=True)
    engine.load(pulled, room)
    loaded = subprocess.run(
        ("podman", "image", "inspect", pulled.config[7:]), check=True, capture_output=True
    )
    assert loaded.returncode == 0
    subprocess.run(("podman", "rmi", "--force", pulled.config[7:]), check=True, capture_output=True)


CHALLENGE = 'Bearer realm="https://auth.example.org/token",service="s",scope="pull"'


def token(content: bytes, challenge: str = CHALLENGE) -> tuple[str, list[str]]:
    """Return the token that is read of an answer, and which addresses were asked."""
    asked: list[str] = []

    def request(_: str, url: str, **__: object) -> HTTPResponse:
        asked.append(url)
        return HTTPResponse(io.BytesIO(content), preload_content=False)

    session = SimpleNamespace(pool=SimpleNamespace(request=request))
    return registry._token(session, challenge), asked  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "given"),
    [
        (b'{"token": "abc"}', "abc"),
        (b'{"access_token": "def"}', "def"),
        (b'{"token": "a\\r\\nX-Evil: 1"}', ""),
        (b'{"token": "\xc3\xa9"}', ""),
        (b'["abc"]', ""),
        (b"not JSON", ""),
        (b"{}", ""),
    ],
)
def test_a_token_is_taken_if_it_can_be_a_header(content: bytes, given: str) -> None:
    assert token(content) == (given, ["https://auth.example.org/token"])


def test_no_token_is_asked_for_without_encryption() -> None:
    plain = CHALLENGE.replace("https:", "http:")
    assert token(b'{"token": "abc"}', plain) == ("", [])
