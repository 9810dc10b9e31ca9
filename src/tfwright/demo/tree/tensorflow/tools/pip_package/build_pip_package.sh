#!/usr/bin/env bash
# Makes a wheel of what was built, with the command line of TensorFlow 1.9 to 1.14.
#
# Any word that is no option is taken for the directory of the wheel, and the last one counts: that
# is how those releases read their arguments.

set -e

usage() {
  echo "Usage:"
  echo "$0 [--src srcdir] [--dst dstdir] [options]"
  echo "$0 dstdir [options]"
  echo "  --src                  prepare the sources in srcdir; without a dstdir that is all"
  echo "  --dst                  build the wheel into dstdir"
  echo "  --project_name <name>  the name of the wheel"
  echo "  --gpu                  the name tfwright_demo_gpu"
  echo "  --nightly_flag         the name tfwright_demo_nightly, with _gpu if that is asked for too"
  exit 1
}

absolute() {
  [[ "$1" = /* ]] && echo "$1" || echo "$PWD/${1#./}"
}

prepare_sources() {
  local runfiles=bazel-bin/tensorflow/tools/pip_package/build_pip_package.runfiles/org_tensorflow
  echo "$(date) : === Preparing sources in dir: $1"
  if [ ! -d bazel-bin/tensorflow ]; then
    echo "Could not find bazel-bin.  Did you run from the root of the build tree?"
    exit 1
  fi
  mkdir -p "$1"
  # The runfiles are links into the tree and Bazel's read-only outputs: copy what they lead to.
  cp -RL "$runfiles/tensorflow" "$1/tensorflow_demo"
  chmod -R u+w "$1/tensorflow_demo"
  rm -rf "$1/tensorflow_demo/tools"
  cp tensorflow/tools/pip_package/setup.py "$1"
}

build_wheel() {
  source tools/python_bin_path.sh
  pushd "$1" > /dev/null
  echo "$(date) : === Building wheel"
  "${PYTHON_BIN_PATH:-python}" setup.py bdist_wheel --project_name "$3" > /dev/null
  mkdir -p "$2"
  cp dist/* "$2"
  popd > /dev/null
  echo "$(date) : === Output wheel file is in: $2"
}

main() {
  local sources="" destination="" project="" gpu="" nightly="" scratch=""
  while [ $# -gt 0 ]; do
    case "$1" in
      --help) usage ;;
      --gpu) gpu=_gpu ;;
      --nightly_flag) nightly=_nightly ;;
      --project_name) shift; project="$1" ;;
      --src) shift; sources="$(absolute "$1")" ;;
      --dst) shift; destination="$(absolute "$1")" ;;
      *) destination="$(absolute "$1")" ;;
    esac
    shift
  done
  if [ -z "$sources$destination" ]; then
    echo "No destination dir provided"
    usage
  fi
  if [ -z "$sources" ]; then
    scratch="$(mktemp -d -t tmp.XXXXXXXXXX)"
    trap "rm -rf '$scratch'" EXIT
    sources="$scratch"
  fi
  prepare_sources "$sources"
  if [ -n "$destination" ]; then
    build_wheel "$sources" "$destination" "${project:-tfwright_demo$nightly$gpu}"
  fi
}

main "$@"
