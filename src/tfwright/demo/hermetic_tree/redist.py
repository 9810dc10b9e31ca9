"""Writes the interpreter and the parts of CUDA and cuDNN that the rules download: DIRECTORY.

The bytes are the same on every host: tar files without compression, without times and owners.
`--pins` prints the checksum of each instead.
"""

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path

PYTHON = "cpython-3.13.5-x86_64-unknown-linux-gnu.tar"
CUDAS = ("12.5.1", "12.8.1")
CUDNN = "9.3.0"


def tar(members):
    """Return an archive of texts by path; programs are those below bin."""
    room = io.BytesIO()
    with tarfile.open(fileobj=room, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            member.mode = 0o755 if name.startswith("bin/") else 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
    return room.getvalue()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def header(folder, name, version):
    """Return an archive of one header, which states a version."""
    text = '#define TFWRIGHT_DEMO_%s "%s"\n' % (name.upper(), version)
    return tar({"%s/include/%s_version.h" % (folder, name): text})


def files():
    """Return the content of each file by its name."""
    found = {PYTHON: tar({"bin/python3": '#!/bin/sh\nexec python3 "$@"\n'})}
    for version in CUDAS:
        folder = "cuda_cudart-linux-x86_64-%s-archive" % version
        found[folder + ".tar"] = header(folder, "cuda", version)
        path = "cuda_cudart/linux-x86_64/%s.tar" % folder
        entry = {"relative_path": path, "sha256": sha256(found[folder + ".tar"])}
        parts = {"release_label": version, "cuda_cudart": {"linux-x86_64": entry}}
        found["redistrib_%s.json" % version] = json.dumps(parts, indent=1).encode()
    folder = "cudnn-linux-x86_64-%s_cuda12-archive" % CUDNN
    found[folder + ".tar"] = header(folder, "cudnn", CUDNN)
    path = "cudnn/linux-x86_64/%s.tar" % folder
    entry = {"relative_path": path, "sha256": sha256(found[folder + ".tar"])}
    parts = {"release_label": CUDNN, "cudnn": {"linux-x86_64": {"cuda12": entry}}}
    found["redistrib_%s.json" % CUDNN] = json.dumps(parts, indent=1).encode()
    return found


def main():
    for name, content in files().items():
        if sys.argv[1] == "--pins":
            print(sha256(content), name)
        else:
            Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
            Path(sys.argv[1], name).write_bytes(content)


if __name__ == "__main__":
    main()
