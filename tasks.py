"""The commands of tfwright. Run as a script it sets itself up first; see `invoke --list`."""

import os
import sys
from pathlib import Path

if sys.version_info < (3, 11):
    sys.exit(
        "tfwright needs Python 3.11 or newer; this is %d.%d.\nInstall a newer one and run it by name: python3.11 tasks.py build"  # noqa: UP031 an old Python has to read this line
        % sys.version_info[:2]
    )

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "src"))

if __name__ == "__main__":
    from tfwright import bootstrap

    bootstrap.hand_over(ROOT, sys.argv[1:])

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from invoke import Context, task

if TYPE_CHECKING:
    from tfwright.pipeline.job import BuildRequest

# Invoke keeps Python from writing bytecode, which suits a small collection; all of tfwright would be compiled by every command.
sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)

RECIPE = {"recipe": "name of a recipe, or path of one that ends in .toml"}
JSON = {"json": "print JSON, for machines"}


@contextmanager
def explained(resume: str = "") -> Iterator[None]:
    """Turn an expected failure into its message and exit status; the one `except` of the product."""
    from tfwright import errors
    from tfwright.terminal import console

    try:
        with console.ending_gently():
            yield
    except errors.TfwrightError as fault:
        console.explain(fault, resume if fault.stage else "")
        sys.exit(fault.exit_status)
    except KeyboardInterrupt:
        console.interrupted(resume)
        sys.exit(errors.INTERRUPTED_STATUS)
    except BrokenPipeError:
        # Whoever reads has seen enough; what is still to be flushed at exit has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _job(
    recipe: str, *, until: str = "publish", offline: bool = False, jobs: int | None = None
) -> "BuildRequest":
    """Read the recipe and the host file into a request."""
    from tfwright.documents import host_file
    from tfwright.documents import recipe as recipes
    from tfwright.pipeline.job import BuildRequest
    from tfwright.terminal import console

    lock = recipes.find(recipe).with_suffix(".lock")
    read = recipes.read(recipe)
    return BuildRequest(
        recipe=read,
        host_file=host_file.read().of(read),
        listener=console.Terminal(),
        offline=offline,
        jobs=jobs,
        until=until,
        locked=lock if lock.is_file() else None,
    )


def _file(given: str, command: str) -> Path:
    """Return the path that a command was given; Invoke takes an option that it does not know for one, and --help too."""
    from tfwright.errors import RecipeError

    if given.startswith("-") and given != "-":
        raise RecipeError(
            f"'{given}' is no file for 'invoke {command}'",
            remedy=f"'invoke --help {command}' lists its options; a file of that name is ./{given}.",
        )
    return Path(given)


@task(
    default=True,
    help=RECIPE
    | {
        "until": "stop after this stage",
        "again": "run this stage even if what it made still holds",
        "fresh": "forget what was built of this recipe; caches stay",
        "offline": "use only what is on this host already",
        "jobs": "actions that Bazel runs at once",
        "wait": "wait for another build of the same recipe",
    },
)
def build(
    _: Context,
    recipe: str = "demo",
    until: str = "publish",
    again: str = "",
    fresh: bool = False,
    offline: bool = False,
    jobs: str = "",
    wait: bool = False,
) -> None:
    """Build a recipe into the wheelhouse; what is already done is kept."""
    with explained(
        resume=f"invoke build --recipe {recipe}"
        + (f" --until {until}" if until != "publish" else "")
    ):
        from tfwright.pipeline import engine
        from tfwright.terminal import console

        engine.insist(until, again)
        job = _job(recipe, until=until, offline=offline, jobs=engine.jobs_asked(jobs))
        console.announce(job)
        console.conclude(job, engine.build(job, again=again, fresh=fresh, wait=wait))


@task(
    help=RECIPE
    | JSON
    | {
        "until": "stop after this stage",
        "again": "assume that this stage is asked for again",
        "offline": "as a build without a network would",
    }
)
def plan(
    _: Context,
    recipe: str = "demo",
    until: str = "publish",
    again: str = "",
    offline: bool = False,
    json: bool = False,
) -> None:
    """Say which stages would run, and why; the commands, environment and files. Runs nothing."""
    with explained():
        from tfwright.pipeline import engine
        from tfwright.terminal import plan as page

        engine.insist(until, again)
        page.show_plan(
            engine.plan(_job(recipe, until=until, offline=offline), again=again), as_json=json
        )


@task(help=JSON)
def recipes(_: Context, json: bool = False) -> None:
    """List the recipes: what each one pins, whether it builds here, how far it was verified."""
    with explained():
        from tfwright.commands import recipes as listing
        from tfwright.documents import host_file
        from tfwright.terminal import recipes as page

        page.show_recipes(listing.rows(host_file.read()), as_json=json)


@task(
    help=RECIPE
    | {
        "everything": "for all recipes in recipes/",
        "offline": "use only what is on this host already",
    }
)
def fetch(
    _: Context, recipe: str = "demo", everything: bool = False, offline: bool = False
) -> None:
    """Bring all inputs into the vault; what could not be had before is looked for again."""
    with explained():
        from tfwright.documents import recipe as recipes
        from tfwright.pipeline import engine
        from tfwright.terminal import console

        for name in recipes.names() if everything else (recipe,):
            job = _job(name, until="fetch", offline=offline)
            console.announce(job)
            console.conclude(job, engine.build(job, again="fetch"))


@task(help=RECIPE)
def lock(_: Context, recipe: str = "demo") -> None:
    """Write down every input of a recipe by its digest, beside it; from then on a build refuses any other."""
    with explained():
        from tfwright.commands import lock as pinning
        from tfwright.documents import recipe as recipes
        from tfwright.terminal import vault as page

        path = recipes.find(recipe).with_suffix(".lock")
        page.show_lock(path, pinning.write(_job(recipe), path))


@task(help=RECIPE | JSON | {"deep": "ask for the bytes, not only whether there are any"})
def links(_: Context, recipe: str = "demo", deep: bool = False, json: bool = False) -> None:
    """Ask who still has the archives that a recipe needs: which have one source left, which none."""
    with explained():
        from tfwright.commands import lock as pinning
        from tfwright.terminal import vault as page

        page.show_links(pinning.rot(_job(recipe), deep=deep), as_json=json)


@task(help=RECIPE | JSON)
def doctor(_: Context, recipe: str = "demo", json: bool = False) -> None:
    """Say what this host lacks for a recipe, the worst first, each with its remedy; 0 only if the build may start."""
    with explained():
        from tfwright import errors
        from tfwright.host import examination, inventory, probes
        from tfwright.terminal import doctor as page

        job, host = _job(recipe), probes.here()
        findings = examination.examine(job.recipe, job.host_file, host)
        page.show_examination(
            recipe, inventory.take(job.recipe, job.host_file, host), findings, as_json=json
        )
        if any(finding.blocks for finding in findings):
            sys.exit(errors.HostError.exit_status)


@task(
    help=RECIPE
    | {
        "cuda": "NVIDIA's CUDA, as downloaded: the .run file for Linux, of macOS's disk image the toolkit's .tar.gz",
        "cudnn": "NVIDIA's cuDNN, as downloaded: a .tgz, .tar.xz or wheel",
        "cuda-sha256": "digest of the former, where the recipe pins none",
        "cudnn-sha256": "digest of the latter",
        "licence-accepted": "say that you have read and accepted NVIDIA's licence; without it you are shown where it is",
    }
)
def toolkit(
    _: Context,
    recipe: str = "demo",
    cuda: str = "",
    cudnn: str = "",
    cuda_sha256: str = "",
    cudnn_sha256: str = "",
    licence_accepted: bool = False,
) -> None:
    """Unpack the CUDA or cuDNN that you downloaded where the recipe's build finds it; needs no root, and leaves /usr/local alone."""
    with explained():
        from tfwright.commands import toolkit as toolkits
        from tfwright.terminal import doctor as page

        job = _job(recipe)
        toolkits.insist(job.recipe, cuda, cudnn)
        for name, archive, digest in (("cuda", cuda, cuda_sha256), ("cudnn", cudnn, cudnn_sha256)):
            if archive:
                page.show_toolkit(
                    *toolkits.install(
                        job,
                        toolkits.KINDS[name],
                        Path(archive),
                        digest,
                        licence_accepted=licence_accepted,
                    )
                )


@task(
    help=JSON
    | {
        "wheel": "path of a .whl file, of any TensorFlow",
        "key": "public key, in PEM, that has to have signed what lies beside the wheel about where it is from",
    }
)
def inspect(_: Context, wheel: str, key: str = "", json: bool = False) -> None:
    """Say what a wheel is: what it needs, its libraries, its GPU code, and whether it is what it says."""
    with explained():
        from tfwright.terminal import inspect as page
        from tfwright.wheel.inspect import inspection

        report = inspection.inspect(_file(wheel, "inspect"), Path(key) if key else None)
        page.show_report(report, as_json=json)
        inspection.insist(report)


@task(
    positional=["first", "second"],
    help=JSON
    | {
        "first": "path of a .whl file",
        "second": "path of another one",
        "diffoscope": "let diffoscope tell more, if it is installed",
    },
)
def compare(
    _: Context, first: str, second: str, json: bool = False, diffoscope: bool = False
) -> None:
    """Say in what two wheels differ: files, metadata, code, source, and how they are packed. Exit 0 if they are the same bytes."""
    with explained():
        from tfwright.terminal import compare as page
        from tfwright.tools import diffoscope as other
        from tfwright.wheel.compare import comparison

        one, two = _file(first, "compare"), _file(second, "compare")
        if diffoscope:
            sys.exit(other.show(one, two, as_json=json))
        found = comparison.compare(one, two)
        page.show_comparison(found, as_json=json)
        sys.exit(0 if found.same else 1)


@task(
    iterable=["requirement"],
    help=JSON
    | {
        "wheel": "path of a .whl file, of any TensorFlow",
        "python": "target Python, as 3.6 or as a path; default: what the wheel's tag says",
        "requirement": 'installed with it, as "numpy<1.17"; may be given again',
        "module": "what to import, where it is not tensorflow",
        "report": "folder for a page with the plot, and the data",
        "runs": "print a table of all wheels that were tried here instead",
    },
)
def smoke(
    _: Context,
    requirement: list[str],
    wheel: str = "",
    python: str = "",
    module: str = "tensorflow",
    report: str = "",
    runs: bool = False,
    json: bool = False,
) -> None:
    """Install a wheel in a fresh venv and run a user's programs on it, on the CPU and the GPUs that are here."""
    with explained():
        from tfwright.commands import smoke as smoking
        from tfwright.documents import host_file
        from tfwright.terminal import smoke as page
        from tfwright.tools import plotting

        if runs:
            page.show_runs(smoking.kept(host_file.read()))
            return
        if report:
            plotting.require()
        request = smoking.Request(Path(wheel), host_file.read(), python, requirement, module)
        seen = smoking.smoke(request, (lambda _: None) if json else page.show_outcome)
        page.show_report(seen, as_json=json)
        if report:
            page.write_report(seen, Path(report))
        smoking.insist(request, seen)


@task(
    help=JSON
    | {
        "wheel": "path of a wheel of ours, whose build record names the recipe; without it the one in the wheelhouse",
        "recipe": "name of a recipe, or path of one that ends in .toml",
        "cached": "let Bazel's disk cache take part: faster, and proves less",
        "control": "on a difference, build again at fixed addresses to tell why",
    },
)
def reproduce(
    _: Context,
    wheel: str = "",
    recipe: str = "",
    cached: bool = False,
    control: bool = True,
    json: bool = False,
) -> None:
    """Build a wheel again elsewhere, from nothing, and say in what it differs and why. Exit 0 if it is the same bytes."""
    with explained():
        from tfwright.commands import reproduce as reproduction
        from tfwright.terminal import compare as page

        job = _job(recipe or reproduction.recipe_named(wheel))
        original = Path(wheel) if wheel else reproduction.published(job)
        reproduction.insist(job, original)
        found = reproduction.reproduce(job, original, cached=cached, control=control)
        page.show_reproduction(found, as_json=json)
        sys.exit(0 if found.comparison.same else 1)


@task(
    help=JSON
    | {
        "gpu": "compute capability, as sm_61 or 6.1",
        "python": "target Python, as 3.6",
        "glibc": "the oldest that the wheel must load on",
        "cuda": "version, as 10.1",
        "os": "Linux or Darwin",
    }
)
def match(
    _: Context,
    gpu: str = "",
    python: str = "",
    glibc: str = "",
    cuda: str = "",
    os: str = "",
    json: bool = False,
) -> None:
    """Name the recipes for a machine (default: this one), the nearest others, and what a new recipe would pin."""
    with explained():
        from tfwright.documents import recipe as recipes
        from tfwright.host import match, probes
        from tfwright.terminal import doctor as page

        host = probes.here()
        wanted = match.wish(host, gpu=gpu, python=python, glibc=glibc, cuda=cuda, system=os)
        ranked = match.rank([recipes.read(name) for name in recipes.names()], wanted, host)
        page.show_matches(wanted, ranked, match.needs(wanted), match.NEAREST, as_json=json)


@task(help=RECIPE | JSON)
def cost(_: Context, recipe: str = "demo", json: bool = False) -> None:
    """Say what a recipe's build took: time, processors, memory, the slowest actions, disk."""
    with explained():
        from tfwright.pipeline import cost as costs
        from tfwright.pipeline.stages import PIPELINE
        from tfwright.terminal import cost as page

        page.show_cost(costs.of(_job(recipe), PIPELINE), as_json=json)


@task(help=RECIPE)
def bazelrc(_: Context, recipe: str = "demo") -> None:
    """Print the .tf_configure.bazelrc that the recipe's answers give; needs no TensorFlow tree."""
    with explained():
        from tfwright.pipeline.stages import configure

        job = _job(recipe)
        sys.stdout.write(configure.rendered(job.recipe, job.host_file))


@task(help=RECIPE | {"stage": "whose directory and environment"})
def shell(_: Context, recipe: str = "demo", stage: str = "compile") -> None:
    """Open a shell in a stage's directory with its exact environment: the way into a failed state."""
    with explained():
        from tfwright.pipeline import engine

        engine.enter(_job(recipe), stage)


@task(
    help=RECIPE
    | {"caches": "remove the mirrors, the vault and the disk cache of all recipes as well"}
)
def clean(_: Context, recipe: str = "demo", caches: bool = False) -> None:
    """Remove what was built of a recipe; the wheelhouse stays."""
    with explained():
        from tfwright.pipeline import engine

        engine.clean(_job(recipe), caches=caches)


@task(
    iterable=["add"],
    help=RECIPE
    | {
        "output": "the file to write",
        "add": "a further file, such as CUDA's installer; may be given again",
    },
)
def bundle(_: Context, add: list[str], recipe: str = "demo", output: str = "") -> None:
    """Put everything that a recipe's build needs into one file, for a host without a network."""
    with explained(resume=f"invoke bundle --recipe {recipe} --output {output}"):
        from tfwright.commands import bundle as carrying
        from tfwright.documents import recipe as recipes
        from tfwright.errors import RecipeError
        from tfwright.terminal import vault as page

        if not output:
            raise RecipeError(
                "No file to write was named",
                remedy=f"Say where it goes: invoke bundle --recipe {recipe} --output FILE.",
            )
        page.show_bundle(
            carrying.pack(
                _job(recipe), recipes.find(recipe), Path(output), [Path(file) for file in add]
            )
        )


@task(
    positional=["file"],
    help={
        "file": "what 'invoke bundle' wrote",
        "into": "directory to build in, instead of the host file's build_out",
    },
)
def unbundle(_: Context, file: str, into: str = "") -> None:
    """Verify a bundle, and put what is in it where 'invoke build --offline' finds it."""
    with explained():
        from tfwright.commands import bundle as carrying
        from tfwright.documents import host_file
        from tfwright.terminal import console
        from tfwright.terminal import vault as page

        build_out = Path(into).resolve() if into else host_file.read().build_out
        page.show_bundle(carrying.unpack(_file(file, "unbundle"), build_out, console.Terminal()))


@task(
    help={
        "verify": "read every file and compare its digest",
        "repair": "with --verify: remove the damaged ones, so that they are fetched again",
        "gc": "remove what is listed as needed by no recipe and no lock",
    }
)
def vault(_: Context, verify: bool = False, repair: bool = False, gc: bool = False) -> None:
    """Say what the vault holds, how large it is, which recipes share it, and what nobody needs."""
    with explained():
        from tfwright.commands import vault as keeping
        from tfwright.documents import host_file
        from tfwright.terminal import vault as page

        build_out = host_file.read().build_out
        if verify or repair:
            page.show_sound(keeping.verify(build_out, repair=repair))
        elif gc:
            keeping.collect(build_out, page.show_garbage)
        else:
            page.show_vault(keeping.look(build_out))


@task(
    positional=["log"],
    help=JSON | {"log": "a log of any stage, plain or packed with gzip; - for standard input"},
)
def diagnose(_: Context, log: str, json: bool = False) -> None:
    """Say what failed first in a log, why, and what helps; exit 0 if anything in it is known."""
    with explained():
        from tfwright.diagnosis import logs, report
        from tfwright.documents import host_file
        from tfwright.terminal import console
        from tfwright.terminal import diagnose as page

        found = logs.diagnose(str(_file(log, "diagnose")), console.Terminal())
        written = report.write(found, log, host_file.read().build_out / "reports")
        page.show_diagnosis(found, written, as_json=json)
        sys.exit(0 if found.recognised else 1)


@task
def lint(_: Context) -> None:
    """Check the recipes and their patches, and the code's style and imports."""
    with explained():
        from tfwright.commands import develop
        from tfwright.commands import recipes as listing

        listing.lint()
        develop.run("ruff", "check")
        develop.run("ruff", "format", "--check")
        develop.run("lint-imports")


@task
def types(_: Context) -> None:
    """Check the types."""
    with explained():
        from tfwright.commands import develop

        develop.run("mypy")


@task(
    name="test",
    help={
        "everything": "run the slow and the real tests as well",
        "coverage": "measure and report coverage",
    },
)
def run_tests(_: Context, everything: bool = False, coverage: bool = False) -> None:
    """Run the fast tests."""
    with explained():
        from tfwright.commands import develop

        develop.test(everything=everything, coverage=coverage)
