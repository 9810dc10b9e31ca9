"""The outermost name in a symbol of C++, which tells whose it is.

A mangled name (Itanium C++ ABI, section 5.1.2) is a row of lengths and names:
``_ZN2cv6String8allocateEm`` is ``cv::String::allocate(unsigned long)``.
"""

import re

_NESTED = re.compile(r"_{1,3}Z(?:T[VTIS]|GV)?N[rVKRO]{0,4}(?P<length>\d{1,3})(?P<names>\w+)")
_SCOPED = re.compile(
    r"(?:vtable for |typeinfo (?:name )?for |guard variable for )?(?P<name>[A-Za-z_]\w*)::"
)


def outermost(symbol: str) -> str:
    """Return the first namespace (or class) of a symbol, mangled or not; empty if it has none."""
    nested = _NESTED.match(symbol)
    if nested:
        return nested["names"][: int(nested["length"])]
    scoped = _SCOPED.match(symbol)
    return scoped["name"] if scoped else ""
