"""Makes the wheel of what Bazel built: OUTPUT FILE..."""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

PACKAGE = "tensorflow_demo_hermetic"


def main():
    output, *given = sys.argv[1:]
    # The packages of pip.bzl, and not those of the host.
    packages = next(path for path in given if path.endswith("/packaging/__init__.py"))
    sys.path.insert(0, str(Path(packages).parents[1]))
    from packaging.utils import canonicalize_name, parse_wheel_filename

    name, version, _, (tag,) = parse_wheel_filename(Path(output).name)
    project = canonicalize_name(str(name))
    files = {}
    for path in map(Path, given):
        if path.parent.name == PACKAGE:
            files["%s/%s" % (PACKAGE, path.name)] = path.read_bytes()
    information = "%s-%s.dist-info" % (name.replace("-", "_"), version)
    files[information + "/METADATA"] = (
        "Metadata-Version: 2.1\nName: %s\nVersion: %s\n"
        "Summary: A matrix product by a tree with hermetic rules\nLicense: Apache-2.0\n"
        % (project, version)
    ).encode()
    files[information + "/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: tfwright-demo\nRoot-Is-Purelib: false\nTag: %s\n" % tag
    ).encode()
    record = information + "/RECORD"
    lines = []
    for path, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append("%s,sha256=%s,%d\n" % (path, digest, len(content)))
    files[record] = "".join([*lines, record + ",,\n"]).encode()
    with zipfile.ZipFile(output, "w") as wheel:
        for path, content in files.items():
            member = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            member.external_attr = 0o644 << 16
            wheel.writestr(member, content)


if __name__ == "__main__":
    main()
