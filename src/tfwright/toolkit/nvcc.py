"""nvcc in a toolkit: it runs from any place, and compiles the same bytes in any directory."""

import hashlib
from collections.abc import Mapping
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
_WRAPPERS = "tfwright/bin"
"""Directory in a toolkit of the programs that stand in front of NVIDIA's."""
# nvcc makes the path absolute, and the compilers make names of it: without the first part of this,
# a build in another directory gives other bytes. The second part is for sources that have no name
# that others can use: the compilers then make names of the directory and of the temporary file too.
# The third is for cicc, which takes one of several codes by the addresses of its data: they follow
# from chance, and from the lengths of the paths that it sees. /sys has no file that it needs.
_WRAPPER = """\
#!/bin/sh
# Gives NVIDIA's {name} the path of the source as nvcc was given it, not as an absolute path, names
# the module by its source, as nvcc was given it, and lets it see the same paths in any directory.
root=$(cd "${{0%/*}}/../.." && pwd -P) || exit
top=/sys/toolkit
enter='mount -t tmpfs none /sys && mkdir /sys/toolkit /sys/work &&
    mount --rbind "$0" /sys/toolkit && mount --rbind . /sys/work && cd /sys/work && exec "$@"'
unshare -rm sh -c "$enter" "$root" true 2> /dev/null || top=$root
for word do
    case $word in ../* | */../*) top=$root ;; esac
done
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
        "$root"/*) word=$top/${{word#"$root"/}} ;;
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
if [ {name} = cicc ] && [ -f "$input" ]; then
    toolkits=$(printf %s "${{root%/*}}" | sed 's/[][\\.*^$,]/\\\\&/g')
    sed -i 's,"'"$toolkits"'/,"/toolkits/,g' "$input" || exit
fi
set -- NVVMIR_LIBRARY_DIR="$top/nvvm/libdevice" "$top/{folder}/{name}" "$@"
set -- env -i ${{LD_LIBRARY_PATH:+"LD_LIBRARY_PATH=$LD_LIBRARY_PATH"}} "$@"
# A container may forbid to fix addresses, and the namespace above.
setarch "$(uname -m)" -R true 2> /dev/null && set -- setarch "$(uname -m)" -R "$@"
[ "$top" = "$root" ] || set -- unshare -rm sh -c "$enter" "$root" "$@"
exec "$@"
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
_RENAMED = "bin/nvcc-nvidia"
_SCRIPTS = {
    f"{_WRAPPERS}/cicc": _WRAPPER.format(name="cicc", folder=_WRAPPED["cicc"]),
    f"{_WRAPPERS}/cudafe++": _WRAPPER.format(name="cudafe++", folder=_WRAPPED["cudafe++"]),
    "bin/nvcc": _DRIVER,
}
"""All that tfwright writes, by its place in a toolkit."""
_COUNTED = {
    f"{_WRAPPERS}/cicc": "eca4ad94ca77bfc5aa3a7c78d960c9a6f1a75e6d21db7a97ff0c88b2e405acff",
    f"{_WRAPPERS}/cudafe++": "d63bfb36a54c9eaec4d5befbd1fb455c211852dbca1df0f14f990354a15fd4ac",
    "bin/nvcc": "7639e86f016ef56460739bfe798dd94e252b03f4186678d633d5bf566cbeebd8",
}
"""The checksums by which a recipe's `tree` counts these scripts, whatever they hold: those that
they had when the bundled recipes were pinned. So a pin changes with the packages only."""


def complete(root: Path) -> None:
    """Complete a toolkit that has nvcc: with a profile, and with scripts before its programs."""
    program, profile = root / "bin/nvcc", root / "bin/nvcc.profile"
    if not program.is_file():
        return
    # Latin-1 keeps the bytes of comments in any encoding.
    text = files.content(profile).decode("latin-1") if profile.is_file() else _PROFILE
    for name, folder in _WRAPPED.items():
        if (root / folder / name).is_file():
            path = f"{_WRAPPERS}/{name}"
            files.write(root / path, _SCRIPTS[path], 0o755)
            if _SEARCH not in text:
                text += _SEARCH
    # Without wrappers nvcc would find nothing there.
    wanted = "CICC_PATH" in text and _CICC_PATH not in text
    if wanted and (root / _WRAPPERS / "cicc").is_file():
        text += _CICC_PATH
    files.write(profile, text.encode("latin-1"))
    if _OPTION in files.content(program):
        program.rename(root / _RENAMED)
    # Also in a copy of a toolkit that an earlier tfwright completed.
    if (root / _RENAMED).is_file():
        files.write(program, _SCRIPTS["bin/nvcc"], 0o755)


def with_pinned_checksums(content: Mapping[str, str]) -> dict[str, str]:
    """Return files with the checksums that a recipe pins: without what our scripts hold."""
    counted = {path: _COUNTED[path] for path in _own_scripts(content)}
    return {**content, **counted}


def has_outdated_script(content: Mapping[str, str]) -> bool:
    """Say whether a script among recorded files is another than this tfwright writes."""
    return any(
        content[path] != hashlib.sha256(_SCRIPTS[path].encode()).hexdigest()
        for path in _own_scripts(content)
    )


def _own_scripts(content: Mapping[str, str]) -> set[str]:
    """Return which files of a toolkit are our scripts."""
    own = _SCRIPTS.keys() & content.keys()
    # An old nvcc keeps its name.
    return own if _RENAMED in content else own - {"bin/nvcc"}
