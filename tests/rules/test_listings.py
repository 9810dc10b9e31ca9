"""Files that rules take from dictionaries: which of them a version, a platform and a list choose."""

import json
from dataclasses import replace

import pytest

from tfwright.rules import listings
from tfwright.rules import repositories as rules
from tfwright.rules.listings import Environment
from tfwright.rules.model import Rules

ONE, TWO, THREE, FOUR, FIVE = ("1" * 64, "2" * 64, "3" * 64, "4" * 64, "5" * 64)
SERVER = "https://example.org/redist"
REDIST = f"""
CUDA_REDIST_JSON_DICT = {{
    "12.5.1": ["{SERVER}/redistrib_12.5.1.json", "{ONE}"],
    "12.8.0": ["{SERVER}/redistrib_12.8.0.json", "{TWO}"],
}}
CUDA_12_NCCL_WHEEL_DICT = {{
    "x86_64-unknown-linux-gnu": {{"version": "2.27", "url": "https://example.org/nccl.whl", "sha256": "{THREE}"}},
    "aarch64-unknown-linux-gnu": {{"version": "2.27", "url": "https://example.org/arm.whl", "sha256": "{FOUR}"}},
}}
CUDA_11_NCCL_WHEEL_DICT = {{
    "x86_64-unknown-linux-gnu": {{"url": "https://example.org/old.whl", "sha256": "{FIVE}"}},
}}
TEMPLATES = {{"libcublas": {{"repo_name": "cuda_cublas"}}, "cudnn": {{"repo_name": "cuda_cudnn"}}}}

def _impl(ctx):
    (url, sha256) = ctx.attr.json_dict["12.5.1"]
    ctx.download(url = url, sha256 = sha256)

_json = repository_rule(implementation = _impl, attrs = {{"json_dict": attr.string_list_dict()}})

def cuda():
    _json(name = "cuda_redist_json", json_dict = CUDA_REDIST_JSON_DICT)
"""
PYTHONS = f"""
DEFAULT_RELEASE_BASE_URL = "https://example.org/pythons"
TOOL_VERSIONS = {{
    "3.12.9": {{
        "url": "x/cpython-{{python_version}}-{{platform}}-{{build}}.{{ext}}",
        "sha256": {{"x86_64-unknown-linux-gnu": "{ONE}", "aarch64-apple-darwin": "{TWO}"}},
    }},
    "3.12.10": {{
        "url": "x/cpython-{{python_version}}-{{platform}}-{{build}}.{{ext}}",
        "sha256": {{"x86_64-unknown-linux-gnu": "{THREE}"}},
    }},
}}

def pythons():
    pass
"""
LIST = {
    "release_label": "12.5.1",
    "libcublas": {
        "linux-x86_64": {"relative_path": "libcublas/cublas.tar.xz", "sha256": FOUR},
        "linux-sbsa": {"relative_path": "libcublas/arm.tar.xz", "sha256": THREE},
    },
    "cudnn": {
        "linux-x86_64": {
            "cuda11": {"relative_path": "cudnn/11.tar.xz", "sha256": THREE},
            "cuda12": {"relative_path": "cudnn/12.tar.xz", "sha256": FIVE},
        }
    },
    "nsight": {"linux-x86_64": {"relative_path": "nsight.tar.xz", "sha256": TWO}},
}
CUDA = {"HERMETIC_CUDA_VERSION": "12.5.1", "HERMETIC_NCCL_VERSION": ""}


def read(text: str, **files: str) -> Rules:
    """Read a tree whose WORKSPACE calls a macro next to which dictionaries stand."""
    name = text.partition("def ")[2] and text.rpartition("def ")[2].partition("(")[0]
    return rules.read(
        {
            "WORKSPACE": f'load("//third_party:all.bzl", "{name}")\n{name}()\n',
            "third_party/all.bzl": text,
            **files,
        }
    )


def test_a_patch_of_workspace_adds_a_version_by_a_constant_of_the_same_name() -> None:
    own = f'CUDA_REDIST_JSON_DICT = {{"13.0.0": ["{SERVER}/redistrib_13.0.0.json", "{FIVE}"]}}\n'
    workspace = f'load("//third_party:all.bzl", "cuda")\n{own}cuda(CUDA_REDIST_JSON_DICT)\n'
    found = read(REDIST.replace("def cuda():", "def cuda(own = {}):"), WORKSPACE=workspace)
    environment = Environment({"HERMETIC_CUDA_VERSION": "13.0.0"})
    (file,) = listings.with_chosen_files(found, environment, lambda _: None).repositories
    assert (file.urls, file.sha256) == ((f"{SERVER}/redistrib_13.0.0.json",), FIVE)


def taken(found: Rules, environment: Environment, content: bytes | None = None) -> dict[str, str]:
    """Return the files that an environment chooses, checksum by name."""
    chosen = listings.with_chosen_files(
        found, environment, lambda sha256: content if sha256 == ONE else None
    )
    return {entry.name: entry.sha256 for entry in chosen.repositories}


def test_the_version_in_force_chooses_the_list_and_its_cuda_the_wheel_of_nccl() -> None:
    found = read(REDIST)
    assert found.unreadable == ()
    assert found.repositories == ()
    assert taken(found, Environment(CUDA)) == {"cuda_redist_json": ONE, "cuda_nccl": THREE}
    arm = taken(found, Environment(CUDA, platform=("Linux", "aarch64")))
    assert arm["cuda_nccl"] == FOUR


def test_a_list_that_is_here_names_the_archives_of_the_platform_that_rules_make_something_of() -> (
    None
):
    chosen = taken(read(REDIST), Environment(CUDA), json.dumps(LIST).encode())
    assert chosen["cuda_cublas"] == FOUR
    assert chosen["cuda_cudnn"] == FIVE
    assert TWO not in chosen.values()
    found = listings.with_chosen_files(
        read(REDIST), Environment(CUDA), lambda _: json.dumps(LIST).encode()
    ).repositories
    assert f"{SERVER}/libcublas/cublas.tar.xz" in {url for one in found for url in one.urls}


def test_a_list_that_is_not_here_and_a_version_that_is_not_listed_are_named() -> None:
    found = read(REDIST)
    (missing,) = listings.with_chosen_files(found, Environment(CUDA), lambda _: None).unreadable
    assert "HERMETIC_CUDA_VERSION 12.5.1" in missing.why
    other = Environment({"HERMETIC_CUDA_VERSION": "12.7.0"})
    (unknown,) = listings.with_chosen_files(found, other, lambda _: None).unreadable
    assert "lists no 12.7.0" in unknown.why


def test_what_this_host_provides_and_a_build_without_cuda_choose_nothing() -> None:
    found = read(REDIST)
    assert taken(found, Environment()) == {}
    local = frozenset(CUDA)
    assert taken(found, Environment(CUDA, local)) == {}


TARS = f"""
MIRRORED_TARS_CUDA_REDIST_JSON_DICT = {{
    "12.5.1": ["{SERVER}/mirror/redistrib_12.5.1_tar.json", "{TWO}"],
}}
{REDIST}"""


@pytest.mark.parametrize(
    "bazelrc",
    [
        "build:tar --repo_env=USE_CUDA_TAR_ARCHIVE_FILES=1\nbuild --config=tar\n",
        "build --repo_env USE_CUDA_TAR_ARCHIVE_FILES=0\n",
    ],
)
def test_where_the_tree_wants_plain_tars_their_list_is_taken(bazelrc: str) -> None:
    entry = {"relative_path": "a/b.tar", "sha256": FIVE}
    listing = json.dumps({"libcublas": {"linux-x86_64": entry}}).encode()
    environment = Environment(CUDA).of_tree(bazelrc)
    chosen = listings.with_chosen_files(
        read(TARS), environment, lambda sha256: listing if sha256 == TWO else None
    )
    assert {one.sha256: one.urls for one in chosen.repositories} == {
        TWO: (f"{SERVER}/mirror/redistrib_12.5.1_tar.json",),
        FIVE: (f"{SERVER}/mirror/a/b.tar",),
        THREE: ("https://example.org/nccl.whl",),
    }
    assert chosen.unreadable == ()


@pytest.mark.parametrize(
    ("environment", "version"),
    [
        (Environment(CUDA).of_tree(""), "12.5.1"),
        (Environment(CUDA, tars=frozenset({"USE_CUDA_TAR_ARCHIVE_FILES"})), "12.8.0"),
        (
            Environment(CUDA, tars=frozenset({"USE_CUDA_TAR_ARCHIVE_FILES"})).of_tree(
                "build --repo_env=USE_CUDA_TAR_ARCHIVE_FILES="
            ),
            "12.5.1",
        ),
    ],
)
def test_without_the_variable_or_a_plain_tar_of_the_version_the_usual_list_is_taken(
    environment: Environment, version: str
) -> None:
    variables = {"HERMETIC_CUDA_VERSION": version}
    chosen = listings.with_chosen_files(
        read(TARS), replace(environment, variables=variables), lambda _: None
    )
    assert [one.urls for one in chosen.repositories if one.name == "cuda_redist_json"] == [
        (f"{SERVER}/redistrib_{version}.json",)
    ]


@pytest.mark.parametrize(
    "entry",
    [
        {"relative_path": "../../etc/passwd", "sha256": TWO},
        {"relative_path": "/etc/passwd", "sha256": TWO},
        {"relative_path": "a b\n", "sha256": TWO},
        {"relative_path": "a.tar", "sha256": "no"},
        {"relative_path": "a.tar"},
        ["a.tar"],
    ],
)
def test_a_hostile_list_names_nothing(entry: object) -> None:
    content = json.dumps({"libcublas": {"linux-x86_64": entry}}).encode()
    assert "cuda_cublas" not in taken(read(REDIST), Environment(CUDA), content)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 100_000, b"[1]", b'{"libcublas": 1}'])
def test_a_list_that_is_none_names_nothing(content: bytes) -> None:
    assert "cuda_cublas" not in taken(read(REDIST), Environment(CUDA), content)


@pytest.mark.parametrize(
    ("platform", "sha256", "name"),
    [
        (("Linux", "x86_64"), THREE, "3.12.10-x86_64-unknown-linux-gnu"),
        (("Darwin", "arm64"), TWO, "3.12.9-aarch64-apple-darwin"),
    ],
)
def test_a_python_is_the_newest_of_its_line_for_the_platform_with_the_whole_address(
    platform: tuple[str, str], sha256: str, name: str
) -> None:
    environment = Environment({"HERMETIC_PYTHON_VERSION": "3.12"}, platform=platform)
    (python,) = listings.with_chosen_files(read(PYTHONS), environment, lambda _: None).repositories
    assert python.sha256 == sha256
    assert python.urls == (f"https://example.org/pythons/x/cpython-{name}-install_only.tar.gz",)


def test_packages_that_pip_installs_are_those_of_the_python_in_force_with_their_checksums() -> None:
    digest = f"--hash=sha256:{TWO}"
    pins = {
        "requirements_lock_3_12.txt": f"""\
# made by pip-compile
--index-url https://example.org
numpy==2.1.3 \\
    {digest} \\
    {digest}
    # via -r requirements.in
six==1.17.0 ; python_version > "3" \\
    {digest}
-e ../elsewhere
--find-links==https://example.org
-i==https://example.org
more==1.0 ; x --index-url https://example.org
other @ https://example.org/other.zip
""",
        "requirements_lock_3_11.txt": "numpy==2.1.3\n",
    }
    found = read(PYTHONS, **pins)
    environment = Environment({"HERMETIC_PYTHON_VERSION": "3.12"})
    assert listings.pip_pins(found, environment) == [
        f"numpy==2.1.3 {digest} {digest}",
        f'six==1.17.0 ; python_version > "3" {digest}',
        "more==1.0 ; x",
    ]
    assert [one.line for one in found.listed if "==" in one.url] == [1, 3, 7, 12]


def test_code_that_downloads_from_a_dictionary_that_is_not_there_is_reported() -> None:
    found = read(
        REDIST.replace("CUDA_REDIST_JSON_DICT = {", "OTHER = lambda: {")
        .replace("WHEEL_DICT", "W")
        .replace('"url"', '"u"')
    )
    assert found.unreadable


def test_an_address_that_is_none_in_one_branch_is_no_download_without_a_checksum() -> None:
    code = """
    if ctx.attr.json_dict:
        url = "https://example.org/a"
    else:
        url = None
    ctx.download(url = url, output = "a")
"""
    found = read(REDIST.replace('    (url, sha256) = ctx.attr.json_dict["12.5.1"]\n', code))
    assert [one.urls for one in found.repositories] == [("https://example.org/a",)]
    assert found.unreadable == ()
