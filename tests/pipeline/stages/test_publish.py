import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.failing import fails
from tests.making import Maker

from tfwright.documents.host_file import Sign
from tfwright.errors import WheelError
from tfwright.pipeline.job import RecipeJob
from tfwright.pipeline.results import Built, Check, Published, Verdict
from tfwright.pipeline.stage import Artefact
from tfwright.pipeline.stages import publish
from tfwright.tools import files
from tfwright.wheel.seal import statement


def verdict(path: Path) -> Verdict:
    return Verdict(
        wheel=Artefact.of(path), checks=(Check(name="import small", passed=True, detail="42"),)
    )


BUILT = Built(target="//:pip", outputs=(), actions=1)


def put_out(job: RecipeJob, path: Path) -> Published:
    return publish.run(job, BUILT, verdict(path))


def test_a_wheel_is_copied_into_the_wheelhouse(
    job: RecipeJob, notes: list[str], make_sealed: Maker
) -> None:
    path = make_sealed()
    published = put_out(job, path).wheel
    assert published.path == job.places.wheelhouse / path.name
    assert published.sha256 == files.sha256(path)
    assert notes == []


def test_the_same_wheel_again_is_left_alone(
    job: RecipeJob, notes: list[str], make_sealed: Maker
) -> None:
    path = make_sealed()
    first = put_out(job, path).wheel.path.stat()
    assert put_out(job, path).wheel.path.stat() == first
    assert notes == []


def test_other_bytes_under_the_same_name_are_replaced_and_told(
    job: RecipeJob, notes: list[str], make_sealed: Maker
) -> None:
    put_out(job, make_sealed())
    other = make_sealed({"small.py": "ANSWER = 43\n"}, folder="other")
    assert put_out(job, other).wheel.sha256 == files.sha256(other)
    assert len(notes) == 1
    assert "had other bytes" in notes[0]


def test_a_disk_that_is_full_leaves_the_old_wheel(
    job: RecipeJob, make_sealed: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = put_out(job, make_sealed()).wheel

    def full(_source: Path, target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(OSError, match="No space left"):
        put_out(job, make_sealed({"small.py": "ANSWER = 43\n"}, folder="other"))
    assert files.sha256(old.path) == old.sha256
    assert sorted(path.name for path in job.places.wheelhouse.glob("*.whl*")) == [
        old.path.name,
        f"{old.path.name}.intoto.json",
        f"{old.path.name}.metadata",
    ]


def test_the_statement_beside_the_wheel_is_about_its_bytes_and_says_what_verify_saw(
    job: RecipeJob, make_sealed: Maker
) -> None:
    for content in ("ANSWER = 42\n", "ANSWER = 43\n"):
        published = put_out(job, make_sealed({"small.py": content}))
        said = json.loads(published.statement.path.read_text("utf-8"))
        assert published.statement.path == published.wheel.path.with_name(
            f"{published.wheel.path.name}.intoto.json"
        )
        assert said["subject"] == [
            {"name": published.wheel.path.name, "digest": {"sha256": published.wheel.sha256}}
        ]
        assert said["predicate"]["runDetails"]["metadata"]["tfwright_checks"] == [
            {"name": "import small", "passed": True, "detail": "42"}
        ]


def signing(job: RecipeJob, key: Path) -> RecipeJob:
    return dataclasses.replace(job, host_file=job.host_file.changed(sign=Sign(key=key)))


def test_a_host_with_a_key_signs_the_statement_and_not_the_wheel(
    job: RecipeJob, make_sealed: Maker, keys: Callable[..., tuple[Path, Path]]
) -> None:
    private, public = keys()
    plain = put_out(job, make_sealed())
    signed = put_out(signing(job, private), make_sealed())
    assert signed.wheel.sha256 == plain.wheel.sha256
    assert plain.envelope is None
    assert signed.envelope
    assert (
        statement.verify_signed(signed.wheel.path, public)
        == json.loads(signed.envelope.path.read_bytes())["signatures"][0]["keyid"]
    )


def test_a_host_that_signs_no_more_leaves_no_old_signature(
    job: RecipeJob, make_sealed: Maker, keys: Callable[..., tuple[Path, Path]]
) -> None:
    signed = put_out(signing(job, keys()[0]), make_sealed())
    put_out(job, make_sealed())
    assert signed.envelope
    assert not signed.envelope.path.exists()


def test_another_key_is_a_reason_to_publish_again(
    job: RecipeJob, keys: Callable[..., tuple[Path, Path]]
) -> None:
    one, other = (publish.inputs(signing(job, keys(name)[0])) for name in ("one", "other"))
    assert one.keys() == other.keys() == {"the key that signs"}
    assert one != other
    assert publish.inputs(job) == {}
    assert publish.inputs(signing(job, Path("/absent.pem"))) == {"the key that signs": "none"}


def test_the_wheelhouse_is_an_index_with_a_page_for_each_recipe(
    job: RecipeJob, make_sealed: Maker
) -> None:
    published = put_out(job, make_sealed()).wheel
    own = job.places.wheelhouse / "r" / job.recipe.name / "small"
    for page in (job.places.wheelhouse / "simple/small", own):
        (listed,) = json.loads((page / "index.json").read_text())["files"]
        assert listed["hashes"]["sha256"] == published.sha256
        assert (page / listed["url"]).resolve() == published.path


def test_a_wheel_that_changed_after_it_was_sealed_is_not_published(
    job: RecipeJob, make_sealed: Maker
) -> None:
    old = put_out(job, make_sealed()).wheel
    path = make_sealed({"small.py": "ANSWER = 43\n"}, folder="other")
    passed = verdict(path)
    path.write_bytes(path.read_bytes() + b"x")
    with fails(WheelError, "changed"):
        publish.run(job, BUILT, passed)
    assert files.sha256(old.path) == old.sha256


@pytest.mark.parametrize("name", ["index.html", "index.json"])
def test_a_page_that_names_another_checksum_is_damage_and_is_written_again(
    job: RecipeJob, make_sealed: Maker, name: str
) -> None:
    passed = make_sealed()
    published = put_out(job, passed)
    assert publish.damage(job.job, published) is None
    page = job.places.wheelhouse / "simple/small" / name
    whole = page.read_bytes()
    page.write_bytes(whole.replace(published.wheel.sha256.encode(), b"0" * 64))
    assert publish.damage(job.job, published) == "the index does not list it any more"
    put_out(job, passed)
    assert page.read_bytes() == whole


def test_metadata_that_somebody_edited_is_written_again(job: RecipeJob, make_sealed: Maker) -> None:
    passed = make_sealed()
    metadata = put_out(job, passed).metadata
    assert metadata
    metadata.path.write_text("Name: evil\n", "utf-8")
    assert put_out(job, passed).metadata == metadata
