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
# nvcc makes the path absolute, and the compilers make names of it: without the first half of this,
# a build in another directory gives other bytes. The second half is for sources that have no name
# that others can use: the compilers then make names of the directory and of the temporary file too.
_WRAPPER = """\
#!/bin/sh
# Gives NVIDIA's {name} the path of the source as nvcc was given it, not as an absolute path, and
# names the module by its source, as nvcc was given it.
file= before= input= id= makes=
for word do
    shift
    case $before in
        --orig_src_file_name) file=$word ;;
        --orig_src_path_name) case $file in /*) ;; *) word=/proc/self/cwd/$file ;; esac ;;
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
    # Without paths of this host: in lines that say where a line is from, and __FILE__ of headers.
    plain() {{ sed -e '/^# /d' -e 's,"/[^"]*/include/[^"]*",,g' "$input"; }}
    sum=$({{ echo "$file"; plain; }} | cksum | cut -d' ' -f1)
    name=$(printf %s "${{file##*/}}_$sum" | tr -c 'A-Za-z0-9_' _)
    printf '_%s_%s' "${{#name}}" "$name" > "$id" || exit
fi
# cicc takes one of several codes by the addresses of its data. A container may forbid to fix them.
fixed="setarch $(uname -m) -R"
$fixed true 2> /dev/null || fixed=
exec $fixed "${{0%/*}}/../../{folder}/{name}" "$@"
"""
"""All compilers of a source read the name from the file that the first one writes."""
_DRIVER = """\
#!/bin/bash
# Starts NVIDIA's nvcc with its temporary files next to the object: gcc puts the name of one into
# the object, and in /tmp they are named by nvcc's process number. It finds its parts by its name.
here=$(dirname "$(readlink -f "$0")")
exec -a "$here/nvcc" "$here/nvcc-nvidia" -objtemp "$@"
"""
_OPTION = b"objdir-as-tempdir"
"""The long name of that option, in the text of an nvcc that has it: those from 11.2 on at least."""
_WRAPPED = {"cicc": "nvvm/bin", "cudafe++": "bin"}
"""Programs that get the path, and where they are in a toolkit."""
_SEARCH = "PATH += $(TOP)/tfwright/bin:\n"
"""In nvcc's profile ``+=`` puts a directory before the others."""
_CICC_PATH = "CICC_PATH = $(TOP)/tfwright/bin\n"
"""From CUDA 12 on nvcc finds cicc by this instead."""


def settle(root: Path) -> None:
    """Complete a toolkit that has nvcc: with a profile, and with scripts before its programs."""
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
            script = _WRAPPER.format(name=name, folder=folder)
            _write_program(root / _WRAPPERS / name, script)
            if _SEARCH not in text:
                text += _SEARCH
    # Without wrappers nvcc would find nothing there.
    wanted = "CICC_PATH" in text and _CICC_PATH not in text
    if wanted and (root / _WRAPPERS / "cicc").is_file():
        text += _CICC_PATH
    files.write(profile, text.encode("latin-1"))
    if _OPTION in files.content(program):
        program.rename(program.with_name("nvcc-nvidia"))
        _write_program(program, _DRIVER)


def _write_program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, script)
    path.chmod(0o755)
