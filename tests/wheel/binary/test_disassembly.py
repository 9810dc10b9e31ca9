"""Instructions read from capstone's memory: the same ones that its own functions give."""

import random

import pytest
from capstone import CS_ARCH_X86, CS_MODE_64, Cs

from tfwright.wheel.binary.disassembly import Disassembler

BEGINNINGS = [
    b"\xc5\xf8\x58\xc1",  # vaddps xmm0, xmm0, xmm1
    b"\x62\xf1\x7c\x48\x58\xc1",  # vaddps zmm0, zmm0, zmm1
    b"\x0f\x28\x05\x00\x01\x00\x00",  # movaps xmm0, [rip + 0x100]
    b"\x48\x89\xe5",  # mov rbp, rsp
    b"\x0f\xa2",  # cpuid
    b"",
]


def code(seed: int) -> bytes:
    """Return instructions between bytes that are none, or are any."""
    chance = random.Random(seed)
    parts = (
        chance.choice(BEGINNINGS) + chance.randbytes(chance.randrange(6))
        for _ in range(chance.randrange(1, 200))
    )
    return b"".join(parts)


def own(content: bytes) -> list[tuple[int, bytes, str, str]]:
    engine = Cs(CS_ARCH_X86, CS_MODE_64)
    engine.skipdata = True
    found = []
    for address, size, mnemonic, operands in engine.disasm_lite(content, 0):
        found.append((address, content[address : address + size], mnemonic, operands))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_every_instruction_with_vector_registers_is_found(seed: int) -> None:
    content = code(seed)
    expected = [
        (code_, mnemonic.encode(), operands.encode())
        for _, code_, mnemonic, operands in own(content)
        if "mm" in operands
    ]
    assert list(map(tuple, Disassembler().vectors(content))) == expected


@pytest.mark.parametrize("seed", range(5))
def test_each_place_belongs_to_the_instruction_that_capstone_names(seed: int) -> None:
    content, decoder = code(seed), Disassembler()
    for address, inside, mnemonic, _ in own(content):
        for place in range(address, address + len(inside)):
            assert decoder.covering(content, place) == (address, inside, mnemonic)
    assert decoder.covering(content, len(content)) == (0, b"", "")


def test_nothing_is_no_instruction() -> None:
    assert list(Disassembler().vectors(b"")) == []
    assert Disassembler().covering(b"", 0) == (0, b"", "")
