"""Packages of Debian and of the Python index, made small, arranged as NVIDIA lays out a toolkit."""

from pathlib import Path

from tests.making import make_folder
from tests.toolkit.parts import part_of

from tfwright.documents.toolkit import Way
from tfwright.toolkit import layout, tree

DEBIAN = {
    "etc/nvcc.profile": "PATH += /usr/lib/nvidia-cuda-toolkit/bin",
    "usr/bin/nvcc": "#!/bin/sh\nexec /usr/lib/nvidia-cuda-toolkit/bin/nvcc",
    "usr/bin/ptxas": "ptxas",
    "usr/lib/nvidia-cuda-toolkit/bin/nvcc": "the real one",
    "usr/lib/nvidia-cuda-toolkit/bin/cicc": "cicc",
    "usr/lib/nvidia-cuda-toolkit/bin/crt/link.stub": "stub",
    "usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc": "bc",
    "usr/include/cuda.h": "#define CUDA_VERSION 11080",
    "usr/include/crt/host_config.h": "",
    "usr/include/cupti.h": "",
    "usr/lib/x86_64-linux-gnu/libcudart.so.11.0": "so",
    "usr/lib/x86_64-linux-gnu/libcudart.so": "->libcudart.so.11.0",
    "usr/lib/x86_64-linux-gnu/libnpp.so": "->libnpp.so.11",
    "usr/lib/x86_64-linux-gnu/stubs/libcuda.so": "stub",
    "usr/share/doc/nvidia-cuda-toolkit/copyright": "licence",
    "usr/share/man/man1/nvcc.1.gz": "manual",
}
WHEEL = {
    "nvidia/__init__.py": "",
    "nvidia/cudnn/__init__.py": "",
    "nvidia/cudnn/include/cudnn.h": "#define CUDNN_MAJOR 8",
    "nvidia/cudnn/lib/libcudnn.so.8": "so",
    "nvidia_cudnn_cu11-8.7.0.84.dist-info/License.txt": "licence",
    "nvidia_cudnn_cu11-8.7.0.84.dist-info/RECORD": "",
}


def laid(folder: Path, content: dict[str, str], mode: int = 0o644) -> Path:
    for name, text in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            path.symlink_to(text[2:])
        else:
            path.write_text(text)
            path.chmod(0o755 if "/bin/" in name else mode)
    return folder


def arranged(tmp_path: Path, content: dict[str, str], way: Way, mode: int = 0o644) -> Path:
    made = make_folder(tmp_path / "made")
    layout.arrange(laid(tmp_path / "raw", content, mode), "cuda", way, made)
    return made


def test_debians_cuda_is_arranged_as_nvidia_lays_it_out(tmp_path: Path) -> None:
    made = arranged(tmp_path, DEBIAN, "debian")
    assert sorted(tree.content(made)) == [
        "bin/crt/link.stub",
        "bin/nvcc",
        "bin/nvcc.profile",
        "bin/ptxas",
        "extras/CUPTI/include/cupti.h",
        "include/crt/host_config.h",
        "include/cuda.h",
        "lib64/libcudart.so",
        "lib64/libcudart.so.11.0",
        "lib64/stubs/libcuda.so",
        "licences/nvidia-cuda-toolkit",
        "nvvm/bin/cicc",
        "nvvm/libdevice/libdevice.10.bc",
        "tfwright/bin/cicc",
    ]
    assert (made / "bin/nvcc").read_text() == "the real one"


def test_nvccs_profile_names_no_place_outside_of_the_toolkit(tmp_path: Path) -> None:
    made = arranged(tmp_path, DEBIAN, "debian")
    assert "/usr" not in (made / "bin/nvcc.profile").read_text()


def test_a_wheels_library_gets_the_name_that_a_linker_asks_for(tmp_path: Path) -> None:
    made = arranged(tmp_path, WHEEL, "wheels")
    assert (made / "lib64/libcudnn.so").readlink() == Path("libcudnn.so.8")
    assert (made / "licences/nvidia_cudnn_cu11-8.7.0.84").read_text() == "licence"
    assert not list(made.rglob("__init__.py"))


def test_the_same_packages_give_the_same_tree_under_any_umask(tmp_path: Path) -> None:
    made = [
        arranged(tmp_path / "one", DEBIAN, "debian"),
        arranged(tmp_path / "two", DEBIAN, "debian", mode=0o600),
    ]
    modes = [
        {path.relative_to(root): path.stat().st_mode for path in root.rglob("*")} for root in made
    ]
    assert modes[0] == modes[1]
    assert tree.content(made[0]) == tree.content(made[1])


def test_who_accepted_a_licence_and_when_is_no_part_of_the_trees_digest(tmp_path: Path) -> None:
    made = arranged(tmp_path, WHEEL, "wheels")
    one = part_of(made)
    other = one.changed(licence_accepted_by="bob", on="2027-01-01")
    digests = {tree.ToolkitRecord(parts={"cudnn": installed}).tree for installed in (one, other)}
    assert len(digests) == 1


def test_cuda_behind_a_link_is_copied_with_its_inner_links(tmp_path: Path) -> None:
    laid(
        tmp_path / "cuda-11.8",
        {
            "bin/nvcc": "nvcc",
            "include": "->targets/x86_64-linux/include",
            "targets/x86_64-linux/include/cuda.h": "h",
            "nsight-compute-2022.3/ncu": "large",
        },
    )
    (tmp_path / "cuda").symlink_to("cuda-11.8")
    made = tmp_path / "made"
    layout.copy_part(tmp_path / "cuda", "cuda", made)
    assert (made / "include/cuda.h").read_text() == "h"
    assert sorted(tree.content(made)) == [
        "bin/nvcc",
        "include",
        "targets/x86_64-linux/include/cuda.h",
    ]


def test_of_a_prefix_that_a_library_shares_only_the_library_is_copied(tmp_path: Path) -> None:
    prefix = laid(
        tmp_path / "usr",
        {
            "include/x86_64-linux-gnu/cudnn_v8.h": "h",
            "include/cudnn.h": "->x86_64-linux-gnu/cudnn_v8.h",
            "include/stdio.h": "not of cuDNN",
            "lib/x86_64-linux-gnu/libcudnn.so.8": "->libcudnn.so.8.7.0",
            "lib/x86_64-linux-gnu/libcudnn.so.8.7.0": "so",
            "lib/x86_64-linux-gnu/libc.so.6": "not of cuDNN",
        },
    )
    made = tmp_path / "made"
    layout.copy_part(prefix, "cudnn", made)
    assert sorted(tree.content(made)) == [
        "include/cudnn.h",
        "include/cudnn_v8.h",
        "lib64/libcudnn.so.8",
        "lib64/libcudnn.so.8.7.0",
    ]
    assert (made / "include/cudnn.h").read_text() == "h"
    assert (made / "lib64/libcudnn.so.8").read_text() == "so"


def test_a_link_that_leads_out_of_the_directory_is_followed(tmp_path: Path) -> None:
    laid(tmp_path / "etc", {"alternatives/cudnn.h": "h"})
    prefix = laid(tmp_path / "usr", {"include/cudnn.h": f"->{tmp_path}/etc/alternatives/cudnn.h"})
    made = tmp_path / "made"
    layout.copy_part(prefix, "cudnn", made)
    assert not (made / "include/cudnn.h").is_symlink()
    assert (made / "include/cudnn.h").read_text() == "h"
