"""A target of a build host as a recipe: its axes reach every place that names them."""

from tfwright.commands.nightly import targets
from tfwright.documents.nightly import NightlyFile, Target
from tfwright.documents.nightly import targets as targets_of


def target(name: str, **axes: object) -> Target:
    """Return the first target of a recipe with axes."""
    recipe = {"name": name, **axes}
    (first, *_) = targets_of(NightlyFile.model_validate({"directory": "/x", "recipe": [recipe]}))
    return first


def test_capabilities_reach_the_answer_that_the_release_reads_and_its_flag() -> None:
    found = targets.recipe_of(
        target("linux-r2.20-cuda12.8-sm120", capabilities=["sm_86,compute_86"], local="cu128")
    )
    name = "HERMETIC_CUDA_COMPUTE_CAPABILITIES"
    assert found.configure.answers[name] == "sm_86,compute_86"
    assert f"--repo_env={name}=sm_86,compute_86" in found.compile.flags
    assert "TF_CUDA_COMPUTE_CAPABILITIES" not in found.configure.answers
    assert found.verify.architectures == ("sm_86", "compute_86")


def test_a_recipe_that_insists_on_ptx_goes_on_to_insist_on_it() -> None:
    found = targets.recipe_of(target("demo-cuda", capabilities=["7.0,7.5"]))
    assert found.verify.architectures == ("sm_70", "sm_75", "compute_75")
    without = targets.recipe_of(target("linux-r2.1-cuda10.1", capabilities=["6.1"]))
    assert without.verify.architectures == ("sm_61",)


def test_a_python_reaches_the_flag_that_repeats_it() -> None:
    found = targets.recipe_of(target("linux-r2.20-cuda12.8-sm120-py310", python=["3.12"]))
    assert found.host.python == "3.12"
    assert "--repo_env=HERMETIC_PYTHON_VERSION=3.12" in found.compile.flags


def test_a_target_without_axes_is_its_recipe() -> None:
    plain = targets.recipe_of(target("linux-r2.1-cuda10.1"))
    assert plain.name == "linux-r2.1-cuda10.1"
    assert plain.verify.architectures[0] == "sm_35"
