"""Archives of real TensorFlow trees, with none of their servers asked: made from the git mirrors of the host file, or dropped by hand.

The trees come from bare repositories named in $TFWRIGHT_TENSORFLOW_MIRRORS (by colons). The numbers are
what a host must reach that mirrors every GitHub repository which those trees name and that still is whole.
"""

from collections import Counter
from pathlib import Path

import pytest
from tests.real.mirrors import V1_8, V1_15, V2_1, texts

from tfwright.documents import host_file
from tfwright.documents import recipe as recipes
from tfwright.progress import SILENCE
from tfwright.rules import repositories
from tfwright.tools.git import clones
from tfwright.tools.git.clones import Clone
from tfwright.tools.git.mirror import Origin
from tfwright.vault import origins, reach, substitutes
from tfwright.vault.origins import GIT, Origins
from tfwright.vault.reach import Reached, Suppliers
from tfwright.vault.store import Store

pytestmark = pytest.mark.real


def brought(commit: str, store: Store) -> Reached:
    """Bring what can be had without a network; skip if the host file names no mirrors of GitHub."""
    host = host_file.read()
    if host.mirror_of("https://github.com/google/re2.git") is None:
        pytest.skip("the host file names no mirrors of GitHub's repositories")
    ways = Origins(host, store.root, offline=True)

    def clone(wanted: Clone) -> Path:
        mirror = Origin.of(host.mirror_of(wanted.remote) or wanted.remote)
        return clones.fetch(
            wanted,
            store.root / "git",
            mirror,
            offline=mirror.local is None or not mirror.local.is_dir(),
        )

    return reach.obtain_all(
        repositories.read(texts(commit)),
        None,
        Suppliers(
            store, lambda wanted: origins.obtain(wanted, store, ways, SILENCE.progress), clone
        ),
    )


@pytest.mark.parametrize(
    ("commit", "least"), [(V1_8, 28), (V1_15, 30), (V2_1, 30)], ids=["1.8.0", "1.15.0", "2.1.0"]
)
def test_githubs_archives_come_out_of_mirrors_with_the_pinned_bytes(
    commit: str, least: int, tmp_path: Path
) -> None:
    store = Store(tmp_path / "store")
    reached = brought(commit, store)
    assert Counter(reached.supply.ways.values())[GIT] >= least
    assert all(map(store.verify, store.digests()))


def test_the_archive_of_another_repositorys_rules_is_followed(tmp_path: Path) -> None:
    reached = brought(V1_8, Store(tmp_path / "store"))
    assert not reached.rules.calls
    assert any(
        one.file.startswith("@io_bazel_rules_closure//") for one in reached.rules.repositories
    )


def test_every_substitute_of_the_recipe_is_made_with_its_digest_and_fits_the_tree(
    tmp_path: Path,
) -> None:
    tables = recipes.read("linux-r1.8-cpu").fetch.substitutes
    found = repositories.read(texts(V1_8))
    wanted = [
        substitutes.wanted_archive(
            name, table, substitutes.replaced_archive(name, found.repositories)
        )
        for name, table in tables.items()
    ]
    supply = origins.obtain(
        wanted,
        Store(tmp_path / "store"),
        Origins(host_file.read(), tmp_path, offline=True),
        SILENCE.progress,
    )
    if supply.missing:
        pytest.skip(
            f"the host file names no source of {', '.join(one.wanted.name for one in supply.missing)}"
        )
    changed = substitutes.rewrite_rules(texts(V1_8), tables)
    assert list(changed) == ["tensorflow/workspace.bzl"]
    now = {
        one.name: one.sha256 for one in repositories.read({**texts(V1_8), **changed}).repositories
    }
    assert {name: now[name] for name in tables} == {
        name: table.sha256 for name, table in tables.items()
    }
