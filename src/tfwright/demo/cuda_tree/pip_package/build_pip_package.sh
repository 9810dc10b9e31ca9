#!/usr/bin/env bash
# Makes a wheel of what was built, in the directory that is named.

set -euo pipefail

runfiles="$0.runfiles/tensorflow_demo_cuda"
destination="$(realpath "$1")"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

# The runfiles are links into the tree and Bazel's read-only outputs: copy what they lead to.
cp -RL "$runfiles/tensorflow_demo_cuda" "$runfiles/pip_package/setup.py" "$scratch"
chmod -R u+w "$scratch"
cd "$scratch"
python setup.py --quiet bdist_wheel --dist-dir "$destination"
