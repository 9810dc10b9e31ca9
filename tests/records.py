"""Build records for tests."""

from tfwright.documents.recipe import Recipe
from tfwright.wheel.seal import build_record
from tfwright.wheel.seal.build_record import (
    BuildRecord,
    Found,
    RecordedBazel,
    RecordedFile,
    RecordedProgram,
    RecordedSource,
    Sealer,
)


def record_of(recipe: Recipe) -> BuildRecord:
    """Return the build record of a recipe, as the seal stage makes it."""
    return BuildRecord(
        sealer=Sealer(version="0.1.0", deflate="0.9.0"),
        recipe=build_record.recipe_content(recipe),
        lock=None,
        source=RecordedSource(
            url=recipe.source.url,
            commit=recipe.source.commit,
            release="1.8",
            content="1" * 40,
            epoch=1,
        ),
        files=(RecordedFile(path="r1.8/0001-why.patch", sha256="3" * 64),),
        bazel=RecordedProgram(version="0.26.1", sha256="2" * 64),
        found=Found(
            system="Linux",
            machine="x86_64",
            glibc="2.36",
            python="3.11.7",
            compiler="cc (Debian) 12.2.0",
            cuda="",
            cudnn="",
        ),
        build=RecordedBazel(target="//:all", flags=(), environment={}),
        substitutions=(),
        stubs=(),
        checks=(),
    )
