"""What package managers, containers and other loaders say: the family, and what follows from names.

The messages are the formats of apt, conda, Docker, NVIDIA's container tools, musl and dyld, with names
put in; those of apt were provoked.
"""

import io

import pytest

from tfwright.diagnosis import reader
from tfwright.diagnosis.reader import Diagnosis, Match


def diagnose(log: str) -> Diagnosis:
    return reader.read(io.BytesIO(log.encode()))


def first(log: str) -> Match:
    return next(match for match in diagnose(log).matches if match.explains)


NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64"
DAEMON = "docker: Error response from daemon: "
SAID = {
    "E: Unable to locate package libcudnn8": ("apt-no-package", "NVIDIA's"),
    "E: Version '99' for 'bash' was not found": ("apt-no-package", "bash, version 99"),
    "E: Couldn't find any package by glob 'python3.13'": ("apt-no-package", "its own Python only"),
    f"E: The repository '{NVIDIA}  InRelease' is not signed.": ("apt-key", "April 2022"),
    "E: Conflicting values set for option Signed-By regarding source http://a.example:9/x/ y: "
    "/k1.gpg != /k2.gpg": ("apt-key", "two different ones (/k1.gpg != /k2.gpg)"),
    "E: Release file for http://a.example/x/InRelease is not valid yet (invalid for another 2h)": (
        "apt-release-file",
        "clock",
    ),
    "E: The repository 'http://a.example/debian buster Release' no longer has a Release file.": (
        "apt-release-file",
        "has ended",
    ),
    f"E: Failed to fetch {NVIDIA}/Packages.gz  Hash Sum mismatch": ("apt-download", "just updated"),
    "E: Failed to fetch http://a.example/p.deb  404  Not Found [IP: 10.0.0.1 80]": (
        "apt-download",
        "older than what the server has",
    ),
    "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)": (
        "apt-lock",
        "not root",
    ),
    "E: Type 'debx' is not known on line 1 in source list /etc/apt/sources.list": (
        "apt-error",
        "debx",
    ),
    "dpkg: error processing archive /a.deb (--install):\n trying to overwrite '/usr/a', which is "
    "also in package b 1.0": ("dpkg-failed", "/a.deb"),
    "Error: Unable to find a match: openblas-devel": ("rpm-no-package", "openblas-devel"),
    "Error: Failed to download metadata for repo 'appstream': Cannot prepare internal mirrorlist: "
    "No URLs in mirrorlist": ("rpm-repository", "CentOS's vault"),
    "PackagesNotFoundError: The following packages are not available from current channels:\n\n"
    "  - tensorflow-gpu=2.11\n": ("conda-not-found", "tensorflow-gpu=2.11"),
    "UnsatisfiableError: The following specifications were found to be in conflict:\n"
    "  - python 3.9*\n  - tensorflow 1.15*\n": ("conda-conflict", "tensorflow 1.15*"),
    "LibMambaUnsatisfiableError: Encountered problems while solving:\n"
    "  - nothing provides libx 1.0 needed by tensorflow-2.6.0-0\n": (
        "conda-conflict",
        "nothing provides libx",
    ),
    "CondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://a.example/r.json>": (
        "conda-download",
        "no connection at all",
    ),
    "EnvironmentLocationNotFound: Not a conda environment: /e": (
        "conda-error",
        "no environment under that name",
    ),
    f'{DAEMON}could not select device driver "" with capabilities: [[gpu]].': (
        "docker-nvidia",
        "not installed on the host",
    ),
    "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.3, please update": (
        "docker-nvidia",
        "older than the CUDA of this image",
    ),
    "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown": (
        "docker-nvidia",
        "found no driver there",
    ),
    f'{DAEMON}failed to create task for container: starting container process caused: exec: "--gpus": '
    "executable file not found in $PATH: unknown.": ("docker-program", "behind the image's name"),
    "exec /usr/local/bin/run.sh: exec format error": ("docker-program", "another processor"),
    f"{DAEMON}manifest for nvidia/cuda:9.0-devel not found: manifest unknown: manifest unknown.": (
        "docker-image",
        "nvidia/cuda:9.0-devel",
    ),
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon "
    "running?": ("docker-daemon", "does not reach its service"),
    'COPY failed: file not found in build context: stat "a.txt": file does not exist': (
        "docker-context",
        "a.txt",
    ),
    # musl (dynlink.c of its ldso)
    "ImportError: Error relocating /x/_a.so: __sprintf_chk: symbol not found": (
        "load-musl",
        "/x/_a.so wants __sprintf_chk",
    ),
    "ImportError: Error loading shared library libstdc++.so.6: No such file or directory (needed by "
    "/x/_a.so)": ("load-musl", "gcc's library"),
    "ImportError: Error relocating /x/_a.so: (null): initial-exec TLS resolves to dynamic definition "
    "in /x/_a.so": ("load-musl", "initial-exec TLS"),
    # What dyld says comes from its ImageLoader.
    "ImportError: dlopen(/x/a.so, 6): no suitable image found.  Did find:\n"
    "\t/x/a.so: mach-o, but wrong architecture\n": ("load-no-suitable-image", "an Intel Python"),
    "java.lang.UnsatisfiedLinkError: no tensorflow_jni in java.library.path": (
        "load-java-library",
        "no tensorflow_jni",
    ),
    # the kernel, by way of a shell, Python and zsh
    "./b.sh: line 3: /x/bazel-real: cannot execute binary file: Exec format error": (
        "execution-other-processor",
        "/x/bazel-real is for another kind of processor",
    ),
    "OSError: [Errno 8] Exec format error: '/b/flatc'": (
        "execution-other-processor",
        "must be built for this machine first",
    ),
    "sh: /x/python: Bad CPU type in executable": ("execution-other-processor", "/x/python is for"),
    "ImportError: Extension a.tensorflow has not been built.  If this is not expected, reinstall A "
    "with A_WITH_TENSORFLOW=1 to debug the build error.": (
        "python-extension-not-built",
        "a.tensorflow was installed without",
    ),
    "ERROR: /o/external/x/BUILD:2:1: name 'new_local_repository' is not defined": (
        "bazel-name-not-defined",
        "native.new_local_repository",
    ),
    "ERROR: No default_toolchain found for cpu 'aarch64'. Valid cpus are: [": (
        "bazel-toolchain",
        "has no entry for it",
    ),
}


@pytest.mark.parametrize("log", SAID)
def test_what_prepares_a_machine_says_what_is_missing(log: str) -> None:
    name, part = SAID[log]
    match = first(f"{log}\n")

    assert match.entry.id == name
    assert part in match.cause


def test_a_list_that_apt_goes_on_without_is_no_failure() -> None:
    log = (
        "Err:1 http://127.0.0.1:9/debian x InRelease\n"
        "  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)\n"
        "W: Failed to fetch http://127.0.0.1:9/debian/dists/x/InRelease  Could not connect\n"
        "W: Some index files failed to download. They have been ignored, or old ones used instead.\n"
    )

    assert diagnose(log).first is None


def test_a_wheel_with_a_file_system_that_is_not_there_is_no_failure() -> None:
    log = (
        "2020-05-03 14:07:40.471816: E tensorflow/core/platform/hadoop/hadoop_file_system.cc:132] "
        "HadoopFileSystem load error: libhdfs.so: cannot open shared object file: No such file or "
        "directory\n"
    )

    assert diagnose(log).first is None


def test_what_nvidias_tool_says_is_nearer_than_what_docker_says() -> None:
    log = (
        f"{DAEMON}failed to create shim task: OCI runtime create failed: stderr: Auto-detected mode "
        "as 'legacy'\n"
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot "
        "open shared object file: no such file or directory: unknown.\n"
    )

    assert first(log).entry.id == "docker-nvidia"
