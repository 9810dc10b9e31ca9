"""The experimental index of variant wheels: reachable, and proved by real machine code."""

import hashlib
import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import requests
from tests.nightly.fake import FakeBuilder, SimulatedClock
from tests.nightly.wheels import write_wheel

from tfwright.documents.nightly import NightlyFile
from tfwright.index import labels, variants
from tfwright.index.wheels import IndexedWheel
from tfwright.nightly import night, site
from tfwright.nightly import state as states
from tfwright.nightly.builds import NightlyBuild
from tfwright.nightly.night import BuildHost, BuildOrder
from tfwright.tools.http import server
from tfwright.wheel import variant
from tfwright.wheel.inspect import inspection

LIE = {"nvidia": {"sm_arch": ["90_real"]}, "x86_64": {"level": ["v1"]}}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a shared library that the compiler of this machine made."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    folder = tmp_path_factory.mktemp("library")
    (folder / "a.c").write_text("int answer(void) { return 42; }\n")
    made = folder / "a.so"
    argv = [compiler, "-shared", "-fPIC", "-o", str(made), str(folder / "a.c")]
    subprocess.run(argv, check=True)
    return made.read_bytes()


class CodeBuilder(FakeBuilder):
    """Builds wheels with machine code, and writes the variant as the real builder does."""

    library = b""
    claims: variant.Properties | None = None
    """What the variant says instead of what its code proves."""

    def build(self, order: BuildOrder) -> NightlyBuild:
        """Put machine code into the wheel."""
        build = super().build(order)
        wheel = write_wheel(
            order.work,
            f"tf_{order.target.name}",
            build.version,
            tag="cp311-cp311-linux_x86_64",
            files={f"tf_{order.target.name}.so": self.library},
        )
        (order.work / build.wheel).unlink()
        if self.claims is None:
            variants.write(wheel, inspection.inspect(wheel).libraries)
        else:
            text = variant.document(self.claims, "sm90_v1")
            labels.with_variant(wheel, order.work, "sm90_v1", text)
        update = {"wheel": wheel.name, "size": wheel.stat().st_size}
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        return build.model_copy(update={**update, "sha256": digest})


@pytest.fixture
def host(tmp_path: Path, library: bytes) -> BuildHost:
    content = {"directory": str(tmp_path), "recipe": [{"name": "a"}, {"name": "b"}]}
    clock = SimulatedClock()
    builder = CodeBuilder(clock)
    builder.library = library
    wanted = NightlyFile.model_validate({**content, "variants": True})
    return BuildHost(wanted, builder, clock)


def page(host: BuildHost, project: str) -> dict[str, dict[str, object]]:
    text = (host.site / f"variants/{project}/index.json").read_text()
    return {file["filename"]: file for file in json.loads(text)["files"]}


@pytest.mark.medium
def test_without_the_key_there_is_no_variant_in_the_index(host: BuildHost) -> None:
    night.run(host)
    assert (host.site / "variants").is_dir()
    without = host.nightly.model_copy(update={"variants": False})
    with states.opened(host.directory) as state:
        site.publish(without, state, host.clock())
    assert not (host.site / "variants").exists()
    assert not NightlyFile.model_validate({"directory": "/x"}).variants


@pytest.mark.medium
def test_a_variant_is_reached_over_http_and_states_what_its_code_shows(host: BuildHost) -> None:
    night.run(host)
    with server.listening(host.site) as listener:
        serving = threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True)
        serving.start()
        url = f"http://{server.LOOPBACK}:{listener.server_address[1]}/variants"
        accept = {"Accept": "application/vnd.pypi.simple.v1+json"}
        try:
            first = requests.get(f"{url}/", headers=accept, timeout=5)
            root = first.json()
            listed = requests.get(f"{url}/tf-a/", headers=accept, timeout=5).json()
            answers = {}
            for file in listed["files"]:
                answer = requests.get(f"{url}/tf-a/{file['url']}", timeout=5)
                digest = hashlib.sha256(answer.content).hexdigest()
                assert digest == file["hashes"]["sha256"]
                assert len(answer.content) == file["size"]
                answers[file["filename"]] = answer
            (name,) = (name for name in answers if name.endswith(".whl"))
            metadata = requests.get(f"{url}/tf-a/{name}.metadata", timeout=5)
        finally:
            listener.shutdown()
    assert first.headers["Content-Type"] == accept["Accept"]
    assert [project["name"] for project in root["projects"]] == ["tf-a", "tf-b"]
    # The baseline of x86-64: the compiler was asked for no more.
    assert name.endswith("-linux_x86_64-v1.whl")
    (meaning,) = (answers[file] for file in answers if file.endswith("-variants.json"))
    assert meaning.json()["variants"] == {"v1": {"x86_64": {"level": ["v1"]}}}
    assert metadata.content.startswith(b"Metadata-Version")


def test_a_wheel_whose_claim_is_not_in_its_code_is_refused_and_said(host: BuildHost) -> None:
    assert isinstance(host.builder, CodeBuilder)
    host.builder.claims = LIE
    said: list[str] = []
    night.run(BuildHost(host.nightly, host.builder, host.clock, hear=said.append))
    assert list((host.site / "variants").glob("*/*.whl")) == []
    assert [line for line in said if "claims nvidia :: sm_arch :: 90_real" in line]
    # The normal wheel claims nothing, and stays.
    assert len(list((host.site / "packages").glob("*.whl"))) == 2


@pytest.mark.medium
def test_a_variant_is_proved_once_and_goes_with_its_build(
    host: BuildHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = host.nightly.retention.model_copy(update={"count": 1, "hidden_days": 0})
    wanted = host.nightly.model_copy(update={"retention": limits, "reproduce": False})
    builder = host.builder
    assert isinstance(builder, CodeBuilder)
    night.run(BuildHost(wanted, builder, host.clock))
    (first, _) = page(host, "tf-a")
    with states.opened(host.directory) as state, monkeypatch.context() as unread:
        unread.setattr(variants, "inspection", None)
        site.publish(wanted, state, host.clock())
    builder.clock.next_night()
    builder.parts["a"] = {"recipe": "2"}
    night.run(BuildHost(wanted, builder, host.clock))
    assert first not in page(host, "tf-a")
    assert not (host.site / "variants/tf-a" / first).exists()
    assert len(list((host.site / "variants/tf-a").glob("*.whl"))) == 1


REFEREE = """
import json
import sys
from variantlib.variants_json import VariantsJson
read = VariantsJson(json.load(open(sys.argv[1])))
for label, described in sorted(read.variants.items()):
    print(label, *sorted(value.to_str() for value in described.properties))
"""


def test_variantlib_reads_what_the_labels_of_a_version_mean(tmp_path: Path) -> None:
    pytest.importorskip("variantlib")
    file = tmp_path / "demo-1.0-variants.json"
    meanings = {"sm90_v1": LIE, "v1": {"x86_64": {"level": ["v1"]}}}
    file.write_bytes(variant.documents(meanings))
    argv = [sys.executable, "-c", REFEREE, str(file)]
    printed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert printed.splitlines() == [
        "sm90_v1 nvidia :: sm_arch :: 90_real x86_64 :: level :: v1",
        "v1 x86_64 :: level :: v1",
    ]


def test_one_label_of_one_version_has_one_meaning(tmp_path: Path) -> None:
    wheels = {}
    for tag, level in (("cp311-cp311", "v1"), ("cp312-cp312", "v2")):
        wheel = write_wheel(tmp_path / "site/packages", tag=f"{tag}-linux_x86_64")
        wheel.with_name(f"{wheel.name}.metadata").write_bytes(b"")
        text = variant.document({"x86_64": {"level": [level]}}, "same")
        made = labels.with_variant(wheel, tmp_path / "builds", "same", text)
        wheels[made] = IndexedWheel(wheel.name, "demo", "1.0", "0" * 64, 1, "0" * 64)
    # Listed before, so that their claims count as proved.
    files = [{"filename": made.name, "hashes": {"sha256": "0" * 64}} for made in wheels]
    page = tmp_path / "site/variants/demo/index.json"
    page.parent.mkdir(parents=True)
    page.write_text(json.dumps({"files": files}))
    (fault,) = variants.refresh(tmp_path / "site", wheels)
    assert "the label same stands for other properties" in fault.what
    assert "cp312" in fault.what


@pytest.mark.parametrize("text", ["", "[]", '{"files": [1]}', '{"files": [{}]}'])
@pytest.mark.medium
def test_a_damaged_page_costs_only_another_proof(host: BuildHost, text: str) -> None:
    night.run(host)
    place = host.site / "variants/tf-a/index.json"
    before = place.read_text()
    place.write_text(text)
    with states.opened(host.directory) as state:
        assert not site.publish(host.nightly, state, host.clock()).refused
    assert place.read_text() == before
