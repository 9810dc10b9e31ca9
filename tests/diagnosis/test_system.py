"""What package managers, containers and other loaders say: the family, and what follows from names.

The messages are the formats of apt, conda, Docker, NVIDIA's container tools, musl and dyld, with names
put in; those of apt were provoked.
"""

from tests.diagnosis.reading import diagnose

from tfwright.diagnosis.reader import Match


def first(log: str) -> Match:
    return next(match for match in diagnose(log).matches if match.explains)


NVIDIA = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64"
DAEMON = "docker: Error response from daemon: "


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
