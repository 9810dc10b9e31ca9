from dataclasses import replace
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import make_file
from tests.patch.conftest import EDITED, HEADER, Make, edit, job_of
from tests.remedies.following import CommandLine

from tfwright.documents import recipe as recipes
from tfwright.errors import RecipeError
from tfwright.patch import adding
from tfwright.patch import writing as patches
from tfwright.pipeline import engine
from tfwright.pipeline.job import RecipeJob
from tfwright.tools import toml_editing
from tfwright.tools.git import patching
from tfwright.tools.git.work_tree import WorkTree
from tfwright.tools.process import file_lock


@pytest.mark.slow
def test_edits_become_a_patch_that_the_recipe_names_and_that_fits(
    path: Path, tmp_path: Path, make: Make, tree: Path
) -> None:
    edit(tree)
    (tree / "new.txt").write_text("new\n", "utf-8")
    made = make("Say that it ïs édited!")
    assert made.path == tmp_path / "patches/demo/0002-say-that-it-is-edited.patch"
    assert made.files == ("new.txt", EDITED)
    assert patching.read_header(made.path) == HEADER
    # What git says of its objects is of no use to readers.
    assert "\nindex " not in made.path.read_text("utf-8")
    again = job_of(path)
    assert again.recipe.source.patches[-1] == "demo/0002-say-that-it-is-edited.patch"
    engine.build(again)
    assert "// Edited." in (again.places.tree / EDITED).read_text("utf-8")


@pytest.mark.medium
def test_a_tree_that_no_build_has_made_is_made_for_the_edits(path: Path, make: Make) -> None:
    job = job_of(path)
    with fails(RecipeError, "Nothing differs", "Edit the files there"):
        make()
    edit(job.places.tree)
    assert make().files == (EDITED,)


@pytest.mark.slow
def test_the_patch_of_another_recipe_in_the_same_folder_is_not_overwritten(
    tmp_path: Path, make: Make, tree: Path
) -> None:
    other = make_file(tmp_path / "patches/demo/0002-edited.patch", "of another recipe")
    edit(tree)
    assert make().path.name == ("0003-edited.patch")
    assert other.read_text("utf-8") == "of another recipe"


@pytest.mark.slow
def test_the_comments_of_the_recipe_stay(path: Path, make: Make, tree: Path) -> None:
    edit(tree)
    before = [line for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
    make()
    after = [line for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
    assert after == before


@pytest.mark.slow
def test_no_patch_is_made_while_a_build_uses_the_tree(
    shell: CommandLine, job: RecipeJob, path: Path, tmp_path: Path
) -> None:
    edit(job.places.tree)
    with file_lock.locked(job.places.lock, "a build"):
        said = shell.remedy(
            f"invoke patch why --recipe {path} --why w --upstream none --drop-when d"
        )
    assert "Wait until that has ended" in said
    assert not (tmp_path / "patches").exists()


def own_first_patch(path: Path) -> tuple[Path, str]:
    """Return where a recipe's own copy of its first patch belongs, and the text of the bundled one."""
    name = recipes.read(str(path)).source.patches[0]
    own = path.with_name("patches") / name
    own.parent.mkdir(parents=True)
    return own, (recipes.PATCHES / name).read_text("utf-8")


@pytest.mark.slow
def test_a_patch_that_does_not_fit_is_redone_in_a_tree_of_its_own(path: Path) -> None:
    own, text = own_first_patch(path)
    removed = next(
        line for line in text.splitlines() if line.startswith("-") and not line.startswith("---")
    )
    own.write_text(text.replace(removed, removed + " changed"), "utf-8")
    job = job_of(path)
    with fails(RecipeError, "--refresh"):
        engine.build(job)
    # The remedy is followed.
    tree = patches.make_refresh_tree(job, "1")
    assert patches.unresolved_files(tree) == [EDITED]
    with fails(RecipeError, "FILE.rej"):
        patches.refresh(job, "1")
    WorkTree(tree).restore()
    edit(tree, "Redone")
    made = patches.refresh(replace(job, until="source"), "1")
    assert made.path == own
    engine.build(job_of(path))
    assert "// Redone." in (job.places.tree / EDITED).read_text("utf-8")


@pytest.mark.slow
def test_new_files_that_the_tree_ignores_stay_in_a_patch_that_names_them_and_are_named_otherwise(
    path: Path, make: Make, tree: Path
) -> None:
    (tree / ".gitignore").write_text("*.gen\n", "utf-8")
    (tree / "a.gen").write_text("made\n", "utf-8")
    made = make("ignored")
    assert (made.files, made.left_out) == ((".gitignore",), ("a.gen",))
    # The next patch has its own edits only, although nothing was built since.
    (tree / "new.txt").write_text("new\n", "utf-8")
    second = make("new", HEADER, "a.gen")
    assert (second.files, second.left_out) == (("a.gen", "new.txt"), ())
    patches.make_refresh_tree(job_of(path), "3")
    assert patches.refresh(job_of(path), "3").files == ("a.gen", "new.txt")


@pytest.mark.medium
def test_a_patch_that_the_tree_has_is_to_be_removed(path: Path, tmp_path: Path) -> None:
    name = recipes.read(str(path)).source.patches[0]
    _, text = own_first_patch(path)
    make_file(tmp_path / "patches/demo/0002-again.patch", text)
    toml_editing.put(path, ("source", "patches"), [name, "demo/0002-again.patch"])
    with fails(RecipeError, "demo/0002-again.patch", "Remove it from source.patches"):
        patches.make_refresh_tree(job_of(path), "2")
    # What was not made to its end is no tree to write a patch from.
    with fails(RecipeError, "Make it:"):
        patches.refresh(job_of(path), "2")


@pytest.mark.slow
def test_edits_that_are_in_no_patch_are_kept_before_the_tree_is_made_again(
    job: RecipeJob, path: Path, tmp_path: Path, make: Make
) -> None:
    (tmp_path / "moved").symlink_to(job.host_file.build_out)
    moved = job.host_file.model_copy(update={"build_out": tmp_path / "moved"})
    edit(job.places.tree)
    engine.build(replace(job, host_file=moved))
    (kept,) = job.places.own.glob("edits-*.patch")
    (added,) = adding.add(job, path, kept, "", lambda _: HEADER)
    assert added.files == (EDITED,)
    edit(job.places.tree, "In a patch")
    make()
    engine.clean(job.job)
    assert [*job.places.own.glob("edits-*.patch")] == [kept]


@pytest.mark.slow
def test_a_redone_patch_names_the_later_ones_that_do_not_fit_after_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = recipes.read(str(path)).source.patches
    listed = [first, "demo/0002-new.patch", "demo/0003-changed.patch", "demo/0004-new-too.patch"]
    new = "new file mode 100644\n--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+new\n"
    changed = "--- a/new.txt\n+++ b/new.txt\n@@ -1 +1,2 @@\n new\n+and more\n"
    bodies = (new.format("new.txt"), changed, new.format("other.txt"))
    for name, body in zip(listed[1:], bodies, strict=True):
        file = "other.txt" if "other" in body else "new.txt"
        text = f"{patches.as_text(HEADER)}\ndiff --git a/{file} b/{file}\n{body}"
        make_file(tmp_path / "patches" / name, text)
    toml_editing.put(path, ("source", "patches"), listed)
    job = job_of(path)
    tree = patches.make_refresh_tree(job, "2")
    assert patches.unresolved_files(tree) == []
    (tree / "new.txt").write_text("newer\n", "utf-8")
    # Another recipe has the same file, and may have another tree.
    make_file(path.with_name("other.toml"), path.read_text("utf-8"))
    monkeypatch.setattr(recipes, "RECIPES", path.parent)
    redone = patches.refresh(job, "2")
    assert (redone.unfit, redone.shared) == ((listed[2],), ("other",))


def test_the_patches_of_a_recipe_are_in_the_checkout_if_the_recipe_is_and_else_next_to_it(
    path: Path, tmp_path: Path
) -> None:
    assert patches.patches_of(recipes.find("demo")) == recipes.PATCHES
    assert patches.patches_of(path) == tmp_path / "patches"


@pytest.mark.slow
def test_a_deletion_and_a_mode_are_part_of_a_patch(path: Path, make: Make, tree: Path) -> None:
    (tree / "README.md").unlink()
    (tree / "WORKSPACE").chmod(0o755)
    made = make("less")
    assert made.files == ("README.md", "WORKSPACE")
    again = job_of(path)
    engine.build(again)
    assert not (again.places.tree / "README.md").exists()
    assert (again.places.tree / "WORKSPACE").stat().st_mode & 0o111


@pytest.mark.slow
def test_what_no_build_would_take_is_not_written(
    path: Path, tmp_path: Path, make: Make, tree: Path
) -> None:
    recipe = path.read_text("utf-8")
    edit(tree)
    condition = replace(HEADER, drop_when="release => 1.9")
    with fails(RecipeError, "release => 1.9"):
        make(header=condition)
    (tree / "data.bin").write_bytes(b"\0\1")
    with fails(RecipeError, "data.bin"):
        make()
    (tree / "data.bin").unlink()
    # The file is named, and not the line of a patch that is gone.
    for name, says in (("ä.txt", "not: "), ("link", "mode 120000 (link) is a link's")):
        (tree / name).symlink_to("README.md")
        with fails(RecipeError, f"The edits make no patch: {says}" if name == "link" else says):
            make()
        (tree / name).unlink()
    assert not list((tmp_path / "patches").rglob("*.patch"))
    assert path.read_text("utf-8") == recipe
