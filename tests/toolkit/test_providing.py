"""CUDA and cuDNN from small archives in each layout that NVIDIA publishes.

Every layout ends in a prefix that a recipe's build finds.
"""

import hashlib
import io
import platform
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file

from tfwright.configure import answers
from tfwright.documents import recipe as recipes
from tfwright.documents.host_file import HostFile
from tfwright.documents.recipe import HostTable, Recipe
from tfwright.documents.release import Release
from tfwright.errors import HostError, RecipeError, SupplyError
from tfwright.host import cuda, probes
from tfwright.pipeline import host_facts
from tfwright.pipeline.job import RecipeJob
from tfwright.toolkit import nvcc, sources, tree
from tfwright.toolkit import providing as toolkit
from tfwright.toolkit.providing import KINDS, Download, Installer
from tfwright.toolkit.sources import Supplier
from tfwright.toolkit.tree import InstalledPart
from tfwright.tools import files
from tfwright.vault import lock
from tfwright.vault.lock import Lock, LockedBazel, LockedPackage, Tensorflow

CUDA_H = "#define CUDA_VERSION 10010\n"
CUDNN_H = "#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 6\n#define CUDNN_PATCHLEVEL 5\n"
Tree = Mapping[str, str | bytes]
"""Path = content; a content that begins with ``->`` makes a link."""


def tar(tree: Tree, mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    # mypy knows the modes as literals only.
    with tarfile.open(fileobj=buffer, mode=mode) as packed:  # type: ignore[call-overload]
        for name, content in tree.items():
            header = tarfile.TarInfo(name)
            data = content.encode() if isinstance(content, str) else content
            if data.startswith(b"->"):
                header.type, header.linkname = tarfile.SYMTYPE, data[2:].decode()
                packed.addfile(header)
            else:
                header.size = len(data)
                packed.addfile(header, io.BytesIO(data))
    return buffer.getvalue()


def runfile(tree: Tree) -> bytes:
    payload = tar(tree)
    return f'#!/bin/sh\nfilesizes="{len(payload)}"\nskip="4"\nexit 1\n'.encode() + payload


def wheel(tree: Tree) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name, content in tree.items():
            packed.writestr(name, content)
    return buffer.getvalue()


WHOLE = {
    "EULA.txt": "be good",
    "cuda-toolkit/bin/nvcc": "",
    "cuda-toolkit/include/cuda.h": CUDA_H,
    "cuda-toolkit/lib64/libcudart.so.10.1": "",
}
CUDAS = {
    "10.1, whole": runfile(
        {
            **{f"builds/{name}": text for name, text in WHOLE.items()},
            "builds/cuda-samples/bin/x86_64/sample": "",
        }
    ),
    "9.2, nested": runfile(
        {
            "run_files/cuda-linux.10.1.105-1.run": runfile(
                {
                    "bin/nvcc": "",
                    "include/cuda.h": CUDA_H,
                    "lib64/libcudart.so.10.1": "",
                    "EULA.txt": "x",
                }
            ),
            "run_files/cuda-samples.10.1.105.run": runfile({"bin/sample": ""}),
            "EULA.txt": "be good",
        }
    ),
    "11, in parts": runfile(
        {
            "EULA.txt": "be good",
            "builds/cuda_cudart/targets/x86_64-linux/include/cuda.h": CUDA_H,
            "builds/cuda_cudart/targets/x86_64-linux/lib/libcudart.so.10.1": "",
            "builds/cuda_nvcc/bin/nvcc": "",
            "builds/cuda_nvcc/targets/x86_64-linux/include/crt/host_config.h": "",
            "builds/nsight_compute/target/bin/ncu": "",
        }
    ),
    "macOS": tar(
        {
            "Developer/NVIDIA/CUDA-10.1/bin/nvcc": "",
            "Developer/NVIDIA/CUDA-10.1/include/cuda.h": CUDA_H,
            "Developer/NVIDIA/CUDA-10.1/lib/libcudart.dylib": "",
        }
    ),
}
CUDNN_INFO = "nvidia_cudnn_cu10-7.6.5.32.dist-info"
CUDNNS = {
    "7, Linux": tar(
        {
            "cuda/include/cudnn.h": CUDNN_H,
            "cuda/lib64/libcudnn.so.7": "",
            "cuda/NVIDIA_SLA_cuDNN_Support.txt": "x",
        }
    ),
    "8, Linux": tar(
        {
            "cudnn-linux-x86_64-7.6.5_cuda10.1-archive/include/cudnn_version.h": CUDNN_H,
            "cudnn-linux-x86_64-7.6.5_cuda10.1-archive/lib/libcudnn.so.7": "",
            "cudnn-linux-x86_64-7.6.5_cuda10.1-archive/LICENSE": "x",
        },
        "w:xz",
    ),
    "wheel": wheel(
        {
            "nvidia/cudnn/include/cudnn_version.h": CUDNN_H,
            "nvidia/cudnn/lib/libcudnn.so.7": "",
            f"{CUDNN_INFO}/License.txt": "x",
            f"{CUDNN_INFO}/METADATA": "Metadata-Version: 2.1\nName: nvidia-cudnn-cu10\n"
            "Version: 7.6.5.32\n",
            f"{CUDNN_INFO}/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-manylinux1_x86_64\n",
        }
    ),
    "macOS": tar({"cuda/include/cudnn.h": CUDNN_H, "cuda/lib/libcudnn.7.dylib": ""}),
}


@pytest.fixture
def job(job: RecipeJob) -> RecipeJob:
    """Return a job for a recipe with CUDA 10.1 and cuDNN 7.6."""
    host = HostTable(system="any", machine="any", python="any", cuda="10.1", cudnn="7.6")
    configure = job.recipe.configure.changed(answers={"TF_NEED_CUDA": True})
    return replace(job, recipe=job.recipe.changed(configure=configure, host=host))


def installer(job: RecipeJob, *, accepted: bool = True) -> Installer:
    store = sources.store(job.places.vault)
    supplier = Supplier(store, job.host_file, job.listener, job.log("toolkit"), job.offline)
    return Installer(job.recipe, supplier, job.locked, accepted)


def install(
    job: RecipeJob, folder: Path, name: str, content: bytes, sha256: str | None = None
) -> tuple[Path, InstalledPart]:
    archive = make_file(folder / f"downloaded-{name}", content)
    digest = hashlib.sha256(content).hexdigest() if sha256 is None else sha256
    made = installer(job).install(Download(KINDS[name], archive, digest))
    return made.root, made.part


@pytest.mark.parametrize("content", CUDAS.values(), ids=CUDAS)
def test_every_layout_of_cuda_ends_in_one_prefix(
    job: RecipeJob, tmp_path: Path, content: bytes
) -> None:
    prefix, record = install(job, tmp_path, "cuda", content)
    assert prefix == job.host_file.build_out / "toolkits/cuda-10.1-cudnn-7.6"
    assert record.version == "10.1"
    assert (prefix / "bin/nvcc").is_file()
    assert (prefix / "include/cuda.h").is_file()
    assert (prefix / "lib64/libcudart.so.10.1").is_file() or (
        prefix / "lib/libcudart.dylib"
    ).is_file()
    assert not [path for path in prefix.rglob("*") if path.name in {"sample", "ncu"}]
    sources = tree.read(prefix).parts["cuda"].sources
    assert sources == {"downloaded-cuda": hashlib.sha256(content).hexdigest()}


@pytest.mark.parametrize("content", CUDNNS.values(), ids=CUDNNS)
def test_every_layout_of_cudnn_ends_in_one_prefix(
    job: RecipeJob, tmp_path: Path, content: bytes
) -> None:
    prefix, record = install(job, tmp_path, "cudnn", content)
    assert (prefix.name, record.version) == ("cuda-10.1-cudnn-7.6", "7.6.5")
    assert (prefix / "lib64/libcudnn.so.7").is_file() or (prefix / "lib/libcudnn.7.dylib").is_file()


def test_the_build_finds_what_was_unpacked_unless_the_host_file_says_otherwise(
    job: RecipeJob, tmp_path: Path
) -> None:
    places = [
        install(job, tmp_path, "cuda", CUDAS["10.1, whole"])[0],
        install(job, tmp_path, "cudnn", CUDNNS["wheel"])[0],
    ]
    found = job.host_file.of(job.recipe)
    lies = cuda.CudaPlaces(job.recipe, found)
    assert [lies.toolkit, lies.cudnn] == places
    given = answers.complete(job.recipe, found, {})
    assert [given["CUDA_TOOLKIT_PATH"], given["CUDNN_INSTALL_PATH"]] == list(map(str, places))
    elsewhere = job.host_file.changed(cuda=Path("/opt/cuda"))
    assert elsewhere.of(job.recipe).cuda == Path("/opt/cuda")


def test_from_1_14_on_the_hosts_places_come_before_the_recipes(job: RecipeJob) -> None:
    own = "/usr/local/cuda-10.1,/usr"
    configure = job.recipe.configure.changed(answers={"TF_NEED_CUDA": True, "TF_CUDA_PATHS": own})
    source = job.recipe.source.changed(release=Release(1, 14))
    recipe = job.recipe.changed(configure=configure, source=source)
    named = job.host_file.changed(cuda=Path("/opt/cuda"))
    assert answers.complete(recipe, named, {})["TF_CUDA_PATHS"] == f"/opt/cuda,{own}"
    found = answers.complete(recipe, job.host_file, {}, Path("/usr/local/cuda"))
    assert found["TF_CUDA_PATHS"] == own


def test_nothing_is_unpacked_before_the_user_has_accepted_the_licence_that_is_shown(
    job: RecipeJob, tmp_path: Path
) -> None:
    archive = make_file(tmp_path / "cuda.run", CUDAS["10.1, whole"])
    with fails(HostError, "--licence-accepted") as caught:
        installer(job, accepted=False).install(
            Download(KINDS["cuda"], archive, files.sha256(archive))
        )
    shown = job.host_file.build_out / "toolkits/cuda-10.1-cudnn-7.6-licences/builds/EULA.txt"
    assert str(shown) in caught.value.what
    assert shown.read_text("utf-8") == "be good"
    assert [path.name for path in shown.parents[2].iterdir()] == ["cuda-10.1-cudnn-7.6-licences"]


def test_who_accepted_the_licence_is_written_down(
    job: RecipeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    prefix, record = install(job, tmp_path, "cudnn", CUDNNS["7, Linux"])
    assert record.licence_accepted_by == "ada"
    assert '"licence_accepted_by": "ada"' in (prefix / "tfwright.json").read_text("utf-8")


def test_without_a_digest_it_is_refused_and_told_what_to_compare(
    job: RecipeJob, tmp_path: Path
) -> None:
    with fails(SupplyError, hashlib.sha256(CUDAS["macOS"]).hexdigest(), "--cuda-sha256"):
        install(job, tmp_path, "cuda", CUDAS["macOS"], sha256="")


def test_the_recipes_digest_is_enough_and_another_is_refused(
    job: RecipeJob, tmp_path: Path
) -> None:
    content = CUDNNS["7, Linux"]
    host = job.recipe.host.changed(sha256={"cudnn": hashlib.sha256(content).hexdigest()})
    with_pin = replace(job, recipe=job.recipe.changed(host=host))
    assert install(with_pin, tmp_path, "cudnn", content, sha256="")[1].version == "7.6.5"
    with fails(SupplyError, hashlib.sha256(content).hexdigest()):
        install(with_pin, tmp_path, "cudnn", CUDNNS["wheel"], sha256="")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (
            tar({"cuda/include/cuda.h": CUDA_H.replace("10010", "9020")}),
            "is CUDA 9.2; small wants 10.1",
        ),
        (tar({"readme": "x"}), "does not contain CUDA"),
        (
            tar({"a/include/cuda.h": CUDA_H, "b/bin/nvcc": "->../../a/include/cuda.h"}),
            "a link that leads out of it",
        ),
        (b"no archive", "cannot be unpacked"),
    ],
    ids=["another version", "something else", "a link out of a part", "no archive"],
)
def test_what_is_not_the_wanted_toolkit_is_refused_and_leaves_nothing(
    job: RecipeJob, tmp_path: Path, content: bytes, what: str
) -> None:
    with pytest.raises(SupplyError, match=what):
        install(job, tmp_path, "cuda", content)
    assert list((job.host_file.build_out / "toolkits").iterdir()) == []


def test_another_archive_takes_the_place_of_the_one_before(job: RecipeJob, tmp_path: Path) -> None:
    install(job, tmp_path, "cudnn", CUDNNS["macOS"])
    prefix, _ = install(job, tmp_path, "cudnn", CUDNNS["7, Linux"])
    assert not (prefix / "lib/libcudnn.7.dylib").exists()


def test_a_recipe_without_cuda_needs_no_toolkit(job: RecipeJob, tmp_path: Path) -> None:
    host = HostTable(system="any", python="any")
    bare = replace(job, recipe=job.recipe.changed(host=host))
    with fails(RecipeError, "small", "[host] cuda"):
        install(bare, tmp_path, "cuda", CUDAS["macOS"])
    with fails(RecipeError, "small"):
        toolkit.check_wanted(bare.recipe, [], HostFile())


def test_a_file_that_is_not_there_is_said_so(job: RecipeJob, tmp_path: Path) -> None:
    with fails(SupplyError, "none.run"):
        installer(job).install(Download(KINDS["cuda"], tmp_path / "none.run", "0" * 64))


def pinned(job: RecipeJob, **parts: object) -> RecipeJob:
    """Return the job with packages pinned for its toolkit."""
    recipe = Recipe.model_validate({**job.recipe.model_dump(), "toolkit": parts})
    return replace(job, recipe=recipe)


def dropped(
    job: RecipeJob, folder: Path, name: str, content: bytes
) -> tuple[RecipeJob, dict[str, str]]:
    """Put a package into the drop folder; return the job that looks there, and the pin."""
    make_file(folder / name, content)
    found = replace(job, host_file=job.host_file.changed(drop=folder), offline=True)
    return found, {name: hashlib.sha256(content).hexdigest()}


CUDNN_WHEEL = "nvidia_cudnn_cu10-7.6.5.32-py3-none-manylinux1_x86_64.whl"


CUDNN_PIN = {CUDNN_WHEEL: hashlib.sha256(CUDNNS["wheel"]).hexdigest()}


@pytest.fixture
def offline(job: RecipeJob, tmp_path: Path) -> RecipeJob:
    """Return the job with the wheel of cuDNN in the drop folder, and no network."""
    return dropped(job, tmp_path / "drop", CUDNN_WHEEL, CUDNNS["wheel"])[0]


@pytest.fixture
def with_wheel(offline: RecipeJob) -> RecipeJob:
    """Return that job for a recipe that pins the wheel."""
    return pinned(offline, cudnn={"wheels": CUDNN_PIN})


def test_what_the_recipe_pins_is_obtained_by_digest_and_found_by_the_build(
    offline: RecipeJob,
) -> None:
    job = pinned(offline, cudnn={"licence": "https://example.com/sla", "wheels": CUDNN_PIN})
    (provided,) = installer(job).obtain()
    assert (provided.title, provided.part.version) == ("cuDNN", "7.6.5")
    assert provided.part.sources == CUDNN_PIN
    assert job.host_file.of(job.recipe).cudnn == provided.root


def test_a_part_that_is_there_already_is_left_alone(with_wheel: RecipeJob) -> None:
    (first,) = installer(with_wheel, accepted=False).obtain()
    stamp = (first.root / tree.RECORD).stat().st_mtime_ns
    (second,) = installer(with_wheel, accepted=False).obtain()
    assert second == first
    assert (first.root / tree.RECORD).stat().st_mtime_ns == stamp


def test_a_part_that_was_changed_is_unpacked_again_as_the_remedy_says(
    with_wheel: RecipeJob,
) -> None:
    (first,) = installer(with_wheel, accepted=False).obtain()
    recipe = with_wheel.recipe.name
    path = next(name for name in first.part.files if not (first.root / name).is_symlink())
    (first.root / path).chmod(0o644)
    (first.root / path).write_bytes(b"changed")
    with fails(SupplyError, "--recipe", recipe):
        tree.check_tree(first.root, recipe)
    list(installer(with_wheel, accepted=False).obtain())
    tree.check_tree(first.root, recipe)


def test_scripts_of_another_tfwright_stop_builds_and_are_replaced_under_the_same_pin(
    job: RecipeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {"cuda/bin/nvcc": "", "cuda/nvvm/bin/cicc": "", "cuda/include/cuda.h": CUDA_H}
    job, pin = dropped(job, tmp_path / "drop", "cuda.tar.xz", tar(whole, "w:xz"))
    archives = {f"https://example.com/{name}": pin for name, pin in pin.items()}
    cuda: dict[str, object] = {"archives": archives}
    (first,) = installer(pinned(job, cuda=cuda)).obtain()
    same = pinned(job, cuda={**cuda, "tree": first.part.tree})
    script = "tfwright/bin/cicc"
    monkeypatch.setitem(nvcc._SCRIPTS, script, "#!/bin/sh\n# Later.\n")
    with fails(SupplyError, first.root, f"invoke toolkit --recipe {job.recipe.name}"):
        tree.check_tree(first.root, job.recipe.name)
    (second,) = installer(same).obtain()
    assert (second.root / script).read_text() == "#!/bin/sh\n# Later.\n"
    tree.check_tree(second.root, job.recipe.name)


def test_the_licence_in_a_pinned_package_and_those_of_other_parts_are_named_before_it_is_used(
    offline: RecipeJob,
) -> None:
    host = offline.recipe.host.changed(tensorrt="7.0")
    job = pinned(
        replace(offline, recipe=offline.recipe.changed(host=host)),
        cudnn={"licence": "https://example.com/sla", "wheels": CUDNN_PIN},
        tensorrt={"licence": "https://example.com/other", "wheels": CUDNN_PIN},
    )
    with fails(HostError, "/License.txt", "https://example.com/sla, https://example.com/other"):
        list(installer(job, accepted=False).obtain())
    assert job.host_file.of(job.recipe).cudnn is None


def test_every_way_that_failed_is_listed(job: RecipeJob) -> None:
    job = pinned(
        replace(job, offline=True),
        cudnn={
            "wheels": {CUDNN_WHEEL: "0" * 64},
            "debian": {"suite": "bookworm", "files": {"libcudnn7_7.6.5_amd64.deb": "1" * 64}},
        },
    )
    with fails(SupplyError, "cuDNN 7.6") as refused:
        list(installer(job).obtain())
    ways = [line.partition(":")[0] for line in refused.value.evidence.lines]
    assert ways == ["wheels", "debian"]


def test_a_lock_refuses_other_packages_than_it_was_written_for(
    with_wheel: RecipeJob, tmp_path: Path
) -> None:
    package = LockedPackage(part="cudnn", name=CUDNN_WHEEL, sha256="1" * 64)
    written = Lock(
        tensorflow=Tensorflow(commit="0" * 40, tree="0" * 40),
        bazel=LockedBazel(version="0.26.1"),
        toolkit=(package,),
    )
    path = make_file(tmp_path / "small.lock", lock.write(written))
    with fails(SupplyError, CUDNN_WHEEL):
        list(installer(replace(with_wheel, locked=path)).obtain())


def test_the_digest_of_a_toolkit_is_part_of_what_a_wheel_is_made_from(
    job: RecipeJob, tmp_path: Path
) -> None:
    install(job, tmp_path, "cuda", CUDAS["10.1, whole"])
    root, _ = install(job, tmp_path, "cudnn", CUDNNS["wheel"])
    found = job.host_file.of(job.recipe)
    facts = host_facts.facts(job.recipe, found, probes.this_host(), Path(sys.executable))
    assert facts.cuda == root
    assert len(facts.toolkit) == len(tree.read(root).tree)


def test_the_cuda_of_an_image_is_known_by_the_image(job: RecipeJob, tmp_path: Path) -> None:
    root, _ = install(job, tmp_path, "cuda", CUDAS["10.1, whole"])
    table = job.recipe.configure
    answers = {**table.answers, "CUDA_TOOLKIT_PATH": str(root)}
    image = {"name": "mine", "digest": f"sha256:{'1' * 64}"}

    def digest(**host: object) -> str:
        recipe = job.recipe.changed(
            configure=table.changed(answers=answers),
            host=HostTable.model_validate({**job.recipe.host.model_dump(), **host}),
        )
        here, python = probes.this_host(), Path(sys.executable)
        return host_facts.facts(recipe, job.host_file, here, python).toolkit

    # A toolkit of the same path on the host has nothing to do with it.
    assert digest(image=image) == ""
    assert digest() != ""


REDISTRIBUTED = {
    "cuda_nvcc-linux-x86_64-10.1-archive": {"bin/nvcc": "", "LICENSE": "be good"},
    "cuda_cudart-linux-x86_64-10.1-archive": {
        "include/cuda.h": CUDA_H,
        "lib/libcudart.so.10.1": "",
        "LICENSE": "be good",
    },
}
"""CUDA as NVIDIA redistributes it: one archive for each part."""


def test_cuda_in_one_archive_for_each_part_ends_in_one_prefix(
    job: RecipeJob, tmp_path: Path
) -> None:
    pins: dict[str, str] = {}
    for name, files_inside in REDISTRIBUTED.items():
        content = tar({f"{name}/{path}": text for path, text in files_inside.items()}, "w:xz")
        job, pin = dropped(job, tmp_path / "drop", f"{name}.tar.xz", content)
        pins |= {f"https://example.com/{file}": digest for file, digest in pin.items()}
    job = pinned(job, cuda={"archives": pins})
    (provided,) = installer(job).obtain()
    found = sorted(path for path in provided.part.files if "nvcc.profile" not in path)
    assert found == ["LICENSE", "bin/nvcc", "include/cuda.h", "lib64/libcudart.so.10.1"]


def test_ways_are_tried_in_the_order_that_the_recipe_states(
    offline: RecipeJob, tmp_path: Path
) -> None:
    job, archive = dropped(offline, tmp_path / "drop", "cudnn.tgz", CUDNNS["7, Linux"])
    archives = {f"https://example.com/{name}": pin for name, pin in archive.items()}
    ways = {"wheels": CUDNN_PIN, "archives": archives}
    (first,) = installer(pinned(job, cudnn=ways)).obtain()
    turned = pinned(job, cudnn={**ways, "order": ["archives", "wheels"]})
    files.remove(first.root)
    (second,) = installer(turned).obtain()
    assert [first.part.way, second.part.way] == ["wheels", "archives"]


def test_files_that_the_recipe_does_not_pin_are_refused(offline: RecipeJob) -> None:
    wanting = pinned(offline, cudnn={"wheels": CUDNN_PIN, "tree": "0" * 64})
    with fails(RecipeError, "cuDNN", "[toolkit.cudnn.differs] wheels"):
        list(installer(wanting).obtain())
    assert wanting.host_file.of(wanting.recipe).cudnn is None


def test_a_stated_difference_is_shown_and_accepted(offline: RecipeJob, notes: list[str]) -> None:
    differs = {"wheels": "no static library"}
    job = pinned(offline, cudnn={"wheels": CUDNN_PIN, "tree": "0" * 64, "differs": differs})
    (provided,) = installer(job).obtain()
    assert provided.part.version == "7.6.5"
    assert "cuDNN from wheels: no static library" in notes


@pytest.mark.medium
@pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() != "x86_64",
    reason="pip takes no wheel of another system",
)
def test_what_is_downloaded_and_unpacked_is_shown_while_it_takes_its_time(
    job: RecipeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes: list[str]
) -> None:
    make_file(tmp_path / CUDNN_WHEEL, CUDNNS["wheel"])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    job = pinned(job, cudnn={"wheels": CUDNN_PIN})
    for _ in range(2):
        list(installer(job).obtain())
    # Nothing the second time, when the part is in place.
    assert notes == [f"Downloading {CUDNN_WHEEL} (wheels)", "Unpacking cuDNN 7.6"]


@pytest.mark.usefixtures("no_pauses")
def test_of_archives_whose_server_is_gone_it_is_said_why(job: RecipeJob, notes: list[str]) -> None:
    gone = {f"https://nowhere.invalid/cudnn-{number}.tar.xz": number * 64 for number in "12"}
    job = pinned(job, cudnn={"archives": gone})
    with fails(SupplyError, "cuDNN 7.6") as caught:
        list(installer(job).obtain())
    assert notes == ["Downloading 2 files (archives)"]
    (line,) = caught.value.evidence.lines
    first = "https://nowhere.invalid/cudnn-1.tar.xz"
    assert line.startswith(f"archives: the download failed: {first}: ")


def test_a_directory_with_the_wanted_version_becomes_the_toolkit(
    job: RecipeJob, tmp_path: Path
) -> None:
    installed = tmp_path / "cuda-10.1"
    make_file(installed / "include/cuda.h", CUDA_H)
    make_file(installed / "bin/nvcc", "")
    (tmp_path / "cuda").symlink_to("cuda-10.1")
    given = toolkit.named_downloads({"cuda": (str(tmp_path / "cuda"), "")})
    (provided,) = map(installer(job, accepted=False).install, given)
    assert (provided.part.version, provided.part.way) == ("10.1", "directory")
    assert job.host_file.of(job.recipe).cuda == provided.root


def test_a_directory_with_another_version_is_refused(job: RecipeJob, tmp_path: Path) -> None:
    files.write(tmp_path / "cuda/include/cuda.h", CUDA_H.replace("10010", "9020"))
    with fails(SupplyError, "CUDA 9.2", "10.1"):
        installer(job, accepted=False).install(Download(KINDS["cuda"], tmp_path / "cuda", ""))


def test_an_archive_whose_checksum_the_recipe_pins_needs_none_on_the_command_line(
    job: RecipeJob, tmp_path: Path
) -> None:
    content = CUDNNS["8, Linux"]
    archive = make_file(tmp_path / "cudnn-8.tar.xz", content)
    pin = {f"https://example.com/{archive.name}": hashlib.sha256(content).hexdigest()}
    job = pinned(job, cudnn={"archives": pin})
    made = installer(job).install(Download(KINDS["cudnn"], archive, ""))
    assert made.part.version == "7.6.5"


def test_a_recipe_whose_cuda_bazel_downloads_needs_no_toolkit() -> None:
    recipe = recipes.read("linux-r2.20-cuda12.8-sm120")
    with fails(RecipeError, "2.18", "12.8") as caught:
        toolkit.check_wanted(recipe, [], HostFile())
    assert "Give what" not in caught.value.remedy
