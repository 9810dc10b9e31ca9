"""What a recipe and its lock pin together, and where they disagree."""

from pathlib import Path

import pytest

from tfwright.documents.recipe import BazelTable, Recipe
from tfwright.errors import SupplyError
from tfwright.vault import locking
from tfwright.vault.lock import (
    Lock,
    LockedBazel,
    LockedBinary,
    LockedFile,
    LockedImage,
    LockedRequirement,
    Tensorflow,
)

ONE, TWO = "1" * 64, "2" * 64
DIGEST = "sha256:" + ONE


@pytest.fixture
def lock(recipe: Recipe) -> Lock:
    """Return the lock of the recipe, with a Bazel and a package."""
    binary = LockedBinary(url="https://example.org/bazel", sha256=ONE, size=1)
    return Lock(
        tensorflow=Tensorflow(commit=recipe.source.commit, tree="a" * 40),
        bazel=LockedBazel(version=recipe.bazel.version, binaries={"linux-x86_64": binary}),
        requirements=(LockedRequirement(name="numpy", version="1.14.5", hashes=(ONE,)),),
    )


def test_a_lock_pins_bazel_where_the_recipe_does_not(lock: Lock) -> None:
    table = BazelTable(version="0.26.1", sha256={"darwin-x86_64": TWO})
    assert locking.bazel_checksums(table, lock) == {"linux-x86_64": ONE, "darwin-x86_64": TWO}
    own = BazelTable(version="0.26.1", sha256={"linux-x86_64": TWO})
    assert locking.bazel_checksums(own, lock) == {"linux-x86_64": TWO}
    # One of another Bazel pins none.
    assert locking.bazel_checksums(BazelTable(version="0.24.1"), lock) == {}


def test_requirements_get_the_checksums_of_the_lock_and_never_a_second_one(lock: Lock) -> None:
    own = f"numpy==1.14.5 --hash=sha256:{TWO}"
    wanted = ["Numpy==1.14.5", own, "six==1.11.0"]
    assert locking.with_hashes(wanted, lock) == [
        f"Numpy==1.14.5 --hash=sha256:{ONE}",
        own,
        "six==1.11.0",
    ]


def test_a_lock_of_the_same_pins_is_up_to_date(recipe: Recipe, lock: Lock) -> None:
    host = recipe.host.changed(requirements=("numpy==1.14.5",))
    assert locking.recipe_differences(recipe.changed(host=host), lock) == []


def test_everything_that_a_recipe_pins_in_another_way_is_named(recipe: Recipe, lock: Lock) -> None:
    image = LockedImage(name="ubuntu:16.04", digest=DIGEST, parts=(DIGEST,), size=1)
    old = lock.changed(
        tensorflow=Tensorflow(commit="b" * 40, tree="a" * 40),
        bazel=LockedBazel(version="0.24.1"),
        image=image,
        files=(LockedFile(path="r1.8/a.patch", sha256=ONE),),
    )
    assert locking.recipe_differences(recipe, old) == [
        f"the commit is {recipe.source.commit}, the lock has {'b' * 40}",
        "Bazel is 0.26.1, the lock has 0.24.1",
        f"the container image is none, the lock has {DIGEST}",
        "r1.8/a.patch is in the recipe or in the lock, not in both",
        "requirement numpy==1.14.5 is in the lock, and not wanted any more",
    ]


def test_an_image_that_the_vault_does_not_have_cannot_be_locked(
    recipe: Recipe, tmp_path: Path
) -> None:
    assert locking.image(recipe, tmp_path) is None
    data = recipe.model_dump()
    data["host"]["image"] = {"name": "ubuntu:16.04", "digest": DIGEST}
    with pytest.raises(SupplyError):
        locking.image(Recipe.model_validate(data), tmp_path)


def test_the_packages_of_a_tree_are_locked_with_their_checksums_whatever_marks_them() -> None:
    one, two = "1" * 64, "2" * 64
    pins = [
        f"a.b[c]==1.0 --hash=sha256:{one} --hash=sha256:{two} --hash=sha256:{one}",
        f'd==2.0 ; python_version > "3" --hash=sha256:{two}',
        f'd==3.0 ; python_version < "3" --hash=sha256:{two}',
        "e==4.0",
    ]
    found = locking.packages_of(pins)
    assert [(each.name, each.version, each.hashes) for each in found] == [
        ("a.b", "1.0", (one, two)),
        ("d", "2.0", (two,)),
        ("d", "3.0", (two,)),
    ]
