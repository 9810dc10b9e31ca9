"""What is installed on a host already, copied into a toolkit of tfwright's own."""

from pathlib import Path

from tfwright.toolkit import directory, tree


def laid(root: Path, files: dict[str, str]) -> Path:
    """Write files; a content that begins with ``->`` makes a link."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("->"):
            path.symlink_to(content[2:])
        else:
            path.write_text(content)
    return root


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
    directory.copy(tmp_path / "cuda", "cuda", made)
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
    directory.copy(prefix, "cudnn", made)
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
    directory.copy(prefix, "cudnn", made)
    assert not (made / "include/cudnn.h").is_symlink()
    assert (made / "include/cudnn.h").read_text() == "h"
