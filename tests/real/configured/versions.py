"""Trees of TensorFlow and of its forks whose ./configure is held against what tfwright renders."""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tfwright.documents.release import ExactRelease


class Pinned(NamedTuple):
    """A commit, and what its ./configure accepts."""

    commit: str
    version: str
    """As a recipe would name the branch or state the release; `exact` reads it."""
    bazel: str
    python: str
    fork: str = "tensorflow"
    """The owner of the repository."""

    @property
    def exact(self) -> ExactRelease:
        """The version as far as its name says it."""
        return ExactRelease.parse(self.version)


def _pinned(lines: str) -> dict[str, Pinned]:
    """Read one version a line: commit, version, Bazel, Python and the fork if it is one."""
    rows = [Pinned(*line.split()) for line in lines.strip().splitlines()]
    return {f"{row.version}-{row.commit[:6]}": row for row in rows}


RELEASES = _pinned(
    """
    9b69ec3960cf9225df557fdc1ab673bd36bde4fb 0.8 0.3.0 3.6
    3976aab26b7495428e343c0b6c1c51a7681f500c 0.9 0.3.0 3.6
    bf1ad52e8f5c682fa78f025ab819c9d2d6249b0e 0.10 0.3.0 3.6
    50575842c3a44cd6a05e57027dd592a64a3ffa52 0.11 0.3.2 3.6
    b5e5120c586298b05654d6f46964b9cde169a866 0.12 0.4.2 3.6
    905662a1c047f314ad295e27d2e2a00b4aa51e90 1.0 0.4.5 3.6
    8ddd727a4a43c0fba11550f3abc277a6e8d9f8c0 1.1 0.4.5 3.6
    030279306903241c8317a738c0aede55760088ee 1.2 0.4.5 3.6
    408fd454d7d2a16269576ea12bcd516e25a6b0c5 1.3 0.5.4 3.6
    81012dcd91770dc8113cd5beb4f854968c27e272 1.4 0.5.4 3.6
    285c6a0fa1d5a3d2a96507ac9f707ce5c0e3ac1f 1.5 0.8.0 3.6
    080d59b76ca27b184f0fce605db7f5339ea5a8cf 1.6 0.9.0 3.6
    9156fcc7a8a901ca9e553297da8237a313255bd8 1.7 0.10.0 3.6
    93bc2e2072e0daccbcff7a90d397b704a9e8f778 1.8 0.10.0 3.6
    9bd0e0e06874b558a07a7cb5ae87753bd17dd9d5 1.9 0.11.0 3.6
    f9410ac2e50d961adbea6b4805f82da90116bebe 1.10 0.15.0 3.6
    7a67406abda84cb5c2da02ed4d77a85ddfd2a417 1.11 0.15.0 3.6
    8ce231a8ebc73be5be53ccd90387fc68b187bcec 1.12 0.15.0 3.6
    c33db572fe31cd48432dab84e17434359786bac8 1.13 0.21.0 3.7
    8d7696a800efb7fa97415bbf288b8022c214672c 1.14 0.24.1 3.7
    590d6eef7e91a6a7392c8ffffb7b58f2e0c8bc6b 1.15 0.26.1 3.7
    f2be0e04c6668b5834e5c571986a514097d3d6e7 2.0 0.26.1 3.7
    e5bf8de410005de06a7ff5393fafdf832ef1d4ad 2.1 0.29.1 3.7
    5c2cbaf0b2c78e9f1de554bd0b32cd3cb90d2bc8 2.2 2.0.0 3.8
    bd173ff4f8209c1a5cb046d85843c2f3deba4f8e 2.3 3.1.0 3.8
    582c8d236cb079023657287c318ff26adb239002 2.4 3.1.0 3.8
    f5c57d495753bbc166abc928430ea808aa8aa6b3 2.5 3.7.2 3.8
    1ec60cd309cfa85bc8f1874a1503486969f511f3 2.6 3.7.2 3.8
    """
)
"""One commit of each release line."""

OTHERS = _pinned(
    """
    3cb39956e622b322e43547cf2b6e337020643f21 0.10.0rc0 0.3.0 3.6
    9937f8c6459c18529b31e50262726a8b40c12a7a 1.0.0-alpha 0.4.2 3.6
    a23f5d7f7757623a4ea8c6e1d743d178a0c561c5 1.1.0-rc0 0.4.5 3.6
    efe5376f3dec8fcc2bf3299a4ff4df6ad3591c88 1.1.0-rc1 0.4.5 3.6
    4019c5837d21aee67e7365ae579bfd04c7ec6f88 1.1.0-rc2 0.4.5 3.6
    5a944dc4f46edd464d8e645956d3a4f653f0d14e 1.4.0-rc0 0.5.4 3.6
    b2a0f1c45b2283910548ebd88ee5aaf4b6fc6077 1.6.0-rc1 0.9.0 3.6
    37aa430d84ced579342a4044c89c236664be7f68 1.5.0 0.8.0 3.6
    d2e24b6039433bd83478da8c8c2d6c58034be607 1.6.0 0.9.0 3.6
    c8137f3a8e1a22b6e274d0ffc84013624523df59 1.7.1 0.10.0 3.6
    5d80e1e8e6ee999be7db39461e0e79c90403a2e4 1.15.2 0.26.1 3.7
    3db52be7be81a87c623cdeb7f03d3767521c5246 1.15.5 0.26.1 3.7
    8f63e2bd523d231d6013f145c6c682804ae1afdb 2.1.1 0.29.1 3.7
    d5ba28c046d38dac42f2a6f740436e4bb3565e08 2.1.2 0.29.1 3.7
    3a8c575c4efe57560f36670ddc028f6fc889060a 2.2 2.0.0 3.8
    85c8b2a817f95a3e979ecd1ed95bff1dc1335cff 2.4 3.1.0 3.8
    22fe34414437d2f2599966c61b8d6183b283ed10 2.4.4 3.1.0 3.8
    2a0f59ecfe64d4e7750e406f00f783ff4bd34631 2.7.1 3.7.2 3.8
    e994fb9c3ad250d38fd07511aaa445eda728f9af 2.8.0 4.2.1 3.8
    c50678bc80ea7700dc0d35478023cee7ab51f819 2.9.1 5.0.0 3.9 nxp-imx
    6cac366ef5b7e632305c2413875ce2d3b72c03dd 2.10.0 5.1.1 3.9 nxp-imx
    11e92c028eceff5b5835d15e3666a4d3d7ef1088 2.11.1 5.3.0 3.9 nxp-imx
    22641785b73a34cc88d8d5276bc7697013510a16 2.12.1 5.3.0 3.9 nxp-imx
    35a3e69fb816c111486be10bf0f3541834a2a0b4 2.13.0 5.3.0 3.9 nxp-imx
    3d0828b75f1e7c35bd1abb322e05889a215f0ddf 2.14.0 6.1.0 3.9 nxp-imx
    91fc0fc3c58e5f464a89ddb21872da294af3ff77 1.15.2+nv20.06 0.26.1 3.7 NVIDIA
    1a3bdd82cee6e9812c4e3a1d72f0523f327d54fb 1.15.5+nv21.02 0.26.1 3.7 NVIDIA
    faafa57c232a1dd050b9b53fda106ce8386cc6d7 1.15.5+nv22.12 0.26.1 3.7 NVIDIA
    e0c4bcb27d761b39a6f0671ae50b13c189e1c35a 1.15 0.26.1 3.7 graphcore
    69a910483a72cfa56c35fbd7db759035824ea601 2.1 0.29.1 3.7 graphcore
    8debb698097670458b5f21d728bc6f734a7b5a53 2.4 3.1.0 3.8 graphcore
    ac0300b8f632d45ede6504c285d86323c1834e1c 2.6 3.7.2 3.8 graphcore
    b2127bbabc09ef32150efdf468e3edf3c90ef460 2.6 3.7.2 3.8 graphcore
    """
)
"""Candidates, patch releases, commits of a branch that are no release, and forks.

Some are stated with less than their exact version, as a recipe may state it: their scripts tell.
"""

NEEDED = (
    "/configure",
    "/configure.py",
    "/.gitignore",
    "/.bazelrc",
    "/WORKSPACE",
    "/tools/",
    "/util/python/",
    "/third_party/gpus/",
    "/third_party/mkl/",
    "/third_party/mpi/",
    "/third_party/py/numpy/",
    "/tensorflow/core/common_runtime/gpu/gpu_device.cc",
    "/tensorflow/core/platform/default/build_config.bzl",
    "/tensorflow/stream_executor/dso_loader.cc",
    "/tensorflow/tools/git/",
    "/tensorflow/tools/swig/",
    "/tensorflow/workspace.bzl",
)
"""What ./configure of any version reads or edits."""


def check_out(commit: str, target: Path) -> Path:
    """Check out the few files that ./configure needs."""
    mirror = _mirror_of(commit)
    clone = ["clone", "-q", "--shared", "--no-checkout", f"--separate-git-dir={target}.git"]
    subprocess.run(["git", *clone, str(mirror), str(target)], check=True)
    in_tree = ["git", "-C", str(target)]
    subprocess.run([*in_tree, "sparse-checkout", "set", "--no-cone", *NEEDED], check=True)
    quiet = ["-c", "advice.detachedHead=false"]
    subprocess.run([*in_tree, *quiet, "checkout", "-q", commit], check=True)
    return target


def _mirror_of(commit: str) -> Path:
    """Return the mirror that holds a commit; skip the test if there is none."""
    named = os.environ.get("TFWRIGHT_TENSORFLOW_MIRRORS")
    if not named:
        pytest.skip("TFWRIGHT_TENSORFLOW_MIRRORS names no mirror of TensorFlow")
    for path in map(Path, named.split(":")):
        question = ["git", "-C", str(path), "cat-file", "-e", f"{commit}^{{commit}}"]
        if subprocess.run(question, check=False, capture_output=True).returncode == 0:
            return path
    pytest.skip(f"no mirror holds {commit}")
