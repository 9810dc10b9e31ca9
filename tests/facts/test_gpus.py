import runpy
from contextlib import suppress
from pathlib import Path

import pytest
import tomlkit

from tfwright.facts import gpus

KNOWN = {
    "2.0": "Quadro 4000",
    "3.0": "GTX 680, GTX 770, GeForce GT 650M, NVIDIA GeForce GT 750M, GeForce GTX 680MX",
    "3.5": "GeForce GTX 780, GTX 780 Ti",
    "3.7": "Tesla K80",
    # A laptop's card of another suffix is another card.
    "5.0": "GTX 750 Ti, GTX 960M, GTX 950M",
    "5.2": "GTX TITAN X, GeForce GTX TITAN X, GeForce GTX 980 Ti, GTX 960, GTX 950, GTX 965M",
    "5.3": "Jetson Nano, NVIDIA Tegra X1",
    "6.0": "Tesla P100, Tesla P100-PCIE-16GB",
    "6.1": "GTX1080Ti, GTX 1080 Ti, 1080 Ti, GT 1030, NVIDIA TITAN X (Pascal), Tesla P4, Quadro P4000",
    "7.0": "Tesla V100-PCIE-16GB",
    "7.2": "Jetson AGX Xavier",
    "7.5": "T4, Tesla T4, GRID T4-8Q, TU104GL [Tesla T4] (rev a1), GRID RTX6000P-24Q, RTX 6000, Quadro RTX 6000",
    "8.0": "NVIDIA A100-SXM4-40GB, A100-SXM4-80GB, A100-SXM4-40GB MIG 1g.5gb",
    "8.6": (
        "NVIDIA A10-24Q, RTX 3090, rtx3090, 3090, NVIDIA GeForce RTX 3080 Laptop GPU, RTX A6000, "
        "RTXA6000-48Q"
    ),
    "8.7": "Jetson Orin",
    "8.9": "NVIDIA GeForce RTX 4070 SUPER, L4, RTX 6000 Ada",
    "9.0": "H100, NVIDIA H100 80GB HBM3",
    "12.0": "RTX 5090, RTX PRO 6000, NVIDIA GeForce RTX 5070 Laptop GPU",
    "12.1": "DGX Spark",
}


@pytest.mark.parametrize(
    ("name", "capability"),
    [(name, capability) for capability, names in KNOWN.items() for name in names.split(", ")],
)
def test_a_gpu_is_known_by_what_people_and_drivers_call_it(name: str, capability: str) -> None:
    found = gpus.by_name(name)
    assert found
    assert found.capability == capability


@pytest.mark.parametrize("name", ["RTX 9090", "GTX 960X", "Voodoo 2", ""])
def test_a_name_that_the_table_does_not_have_is_unknown(name: str) -> None:
    assert gpus.by_name(name) is None


@pytest.mark.parametrize(
    ("name", "one"), [("GT 730", r"3\.0"), ("GTX 860M", r"3\.0"), ("TITAN X", r"6\.1")]
)
def test_a_name_that_stands_for_several_chips_says_which_capabilities(name: str, one: str) -> None:
    with pytest.raises(gpus.AmbiguousGpu, match=one) as several:
        gpus.by_name(name)
    assert len({gpu.capability for gpu in several.value.found}) > 1


@pytest.mark.parametrize(
    ("name", "maker"),
    [
        ("Radeon RX 580", "AMD"),
        ("MI300X", "AMD"),
        ("Arc A770", "Intel"),
        ("Apple M2 Pro", "Apple"),
        ("RTX 3090", ""),
    ],
)
def test_gpus_of_other_makers_are_told_apart(name: str, maker: str) -> None:
    assert gpus.other_maker(name)[0] == maker


def test_a_card_of_one_kind_of_machine_brings_its_processor() -> None:
    arm, x86 = gpus.by_name("T4G"), gpus.by_name("T4")
    assert arm
    assert x86
    assert (arm.capability, arm.machine) == (x86.capability, "aarch64")
    assert not x86.machine
    assert not gpus.machine_of("7.5")


def test_every_name_of_the_table_is_known() -> None:
    for name in gpus.names():
        with suppress(gpus.AmbiguousGpu):
            assert gpus.by_name(name), name


def test_names_are_read_from_a_list_of_pci_ids() -> None:
    # A program for maintainers, and no part of tfwright.
    gather = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks/gather_gpus.py"))
    listed = (
        "10dd  Another\n\t0001  GM107 [GeForce GTX 1]\n"
        "10de  NVIDIA Corporation\n\t0001  GM107M [GeForce GTX 960M]\n"
        "\t0002  GB203M / GN22 [GeForce RTX 5090 Max-Q / Mobile]\n"
        "\t0003  AD107GL [RTX 2000 / 2000E Ada Generation]\n\t0004  GA107GL [A2 / A16]\n"
        "\t0005  GF117M [GeForce 610M/710M]\n\t0006  GH100 [H100 NVSwitch]\n\t0007  AD102 Audio\n"
    )
    assert list(gather["devices"](listed)) == [
        ("GM107M", "GeForce GTX 960M"),
        ("GB203M", "GeForce RTX 5090 Laptop GPU"),
        ("AD107GL", "RTX 2000 Ada Generation"),
        ("AD107GL", "RTX 2000E Ada Generation"),
        ("GA107GL", "A2"),
        ("GA107GL", "A16"),
        ("GF117M", "GeForce 610M"),
        ("GF117M", "GeForce 710M"),
    ]
    kepler = tomlkit.table()
    assert gather["chip_named"]("GK110BGL", {"GK110": kepler}) is kepler
    assert gather["chip_named"]("NV40", {}) is None
