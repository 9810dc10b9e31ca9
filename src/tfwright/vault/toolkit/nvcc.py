"""nvcc in a toolkit: it runs from any place, and compiles the same bytes in any directory."""

from pathlib import Path

from tfwright.tools import files

_PROFILE = """\
TOP = $(_HERE_)/..
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(TOP)/nvvm/bin:$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib64/stubs" "-L$(TOP)/lib64"
"""
"""What nvcc reads next to itself; with paths from there, the toolkit may lie anywhere."""
_WRAPPERS = Path("tfwright/bin")
"""Directory in a toolkit of the programs that stand in front of NVIDIA's."""
# nvcc makes the path absolute, and the compilers make the names of anonymous namespaces of it:
# without this, a build in another directory gives other bytes.
_WRAPPER = """\
#!/bin/sh
# Gives NVIDIA's {name} the path of the source as nvcc was given it, not as an absolute path.
file= before=
for word do
    shift
    case $before in
        --orig_src_file_name) file=$word ;;
        --orig_src_path_name) case $file in /*) ;; *) word=/proc/self/cwd/$file ;; esac ;;
    esac
    set -- "$@" "$word"
    before=$word
done
exec "${{0%/*}}/../../{folder}/{name}" "$@"
"""
_NAMING_WRAPPER = """\
#!/bin/sh
# Names the module by its source, as nvcc was given it, and not by a temporary file of nvcc's.
file= before= input= id= makes=
for word do
    shift
    case $before in
        --orig_src_file_name) file=$word ;;
        --module_id_file_name) id=$word ;;
    esac
    before=$word
    case $word in
        *.ii) input=$word ;;
        --gen_module_id_file) makes=yes; continue ;;
    esac
    set -- "$@" "$word"
done
if [ "$makes" ]; then
    # Not the lines that say where a line is from: they hold paths of this host.
    sum=$({ echo "$file"; grep -v '^# ' "$input"; } | cksum | cut -d' ' -f1)
    name=$(printf %s "${file##*/}_$sum" | tr -c 'A-Za-z0-9_' _)
    printf '_%s_%s' "${#name}" "$name" > "$id" || exit
fi
exec "${0%/*}/../../nvvm/bin/cicc" "$@"
"""
"""For a cicc that gets no path, as that of CUDA 11.2.

It makes those names of its input, a temporary file that has nvcc's process number in its name. All
compilers of a source read the name from the file that the first cicc writes, so that only this one
has to be led.
"""
_WRAPPED = {"cicc": "nvvm/bin", "cudafe++": "bin"}
"""Programs that get the path, and where they are in a toolkit."""
_SEARCH = "PATH += $(TOP)/tfwright/bin:\n"
"""In nvcc's profile ``+=`` puts a directory before the others."""
_CICC_PATH = "CICC_PATH = $(TOP)/tfwright/bin\n"
"""From CUDA 12 on nvcc finds cicc by this instead."""


def settle(root: Path) -> None:
    """Complete a toolkit that has nvcc: with a profile, and with the wrappers of its compilers."""
    program, profile = root / "bin/nvcc", root / "bin/nvcc.profile"
    if not program.is_file():
        return
    # Latin-1 keeps the bytes of comments in any encoding.
    text = (
        files.content(profile).decode("latin-1")
        if profile.is_file()
        else _PROFILE
    )
    for name, folder in _WRAPPED.items():
        if (root / folder / name).is_file():
            _wrap(root, name, folder)
            if _SEARCH not in text:
                text += _SEARCH
    # Without wrappers nvcc would find nothing there.
    wanted = "CICC_PATH" in text and _CICC_PATH not in text
    if wanted and (root / _WRAPPERS / "cicc").is_file():
        text += _CICC_PATH
    files.write(profile, text.encode("latin-1"))


def _wrap(root: Path, name: str, folder: str) -> None:
    wrapper = root / _WRAPPERS / name
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    program = files.content(root / folder / name)
    pathless = (
        b"gen_module_id_file" in program and b"orig_src_path_name" not in program
    )
    script = _WRAPPER.format(name=name, folder=folder)
    if name == "cicc" and pathless:
        script = _NAMING_WRAPPER
    files.write(wrapper, script)
    wrapper.chmod(0o755)
