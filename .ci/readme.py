"""Runs the commands of README.md in a clean clone, and compares what they print with what it shows.

A block below `<!-- needs: … -->` needs more than continuous integration has, and is left out. With
--write the block of the demo is written as it was printed. Other words are further pages to run.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(<!-- needs: [^\n]*-->\n)?```console\n(.*?)```", re.DOTALL)
DEMO = "python3 tasks.py build"
CLONE = "/home/you/tfwright"
"""The clone's directory, as the pages show it."""
MADE_WITH = re.compile(r"rebuilt by .*?\)|-cp3\d+-")
"""The compiler and the Python of the demo, which its checksum depends on."""


def plain(line: str, *, exact: bool = False) -> str:
    """Return a line without what differs from run to run and, unless `exact`, between hosts."""
    line = re.sub(r"[0-9.]+ s\b|[0-9]+ min [0-9]+ s", "TIME", line.strip())
    if not exact:
        line = re.sub(r"[0-9,]+ bytes, sha256 [0-9a-f]+", "SIZE AND DIGEST", line)
    line = re.sub(r"rebuilt by .*", "rebuilt", line)
    line = re.sub(r"read on [0-9-]+|cp3\d+|_(x86_64|aarch64)", "", line)
    return " ".join(line.split())


def ran(command: str, clone: Path) -> str:
    """Run one command in the clone as its reader would; end the program if it fails."""
    line = f"export PATH='{clone}/.venv/bin':$PATH COLUMNS=100; {command}"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=clone,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"{done.returncode}  {command}", flush=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return (done.stderr + done.stdout).replace(str(clone), CLONE)


def main() -> None:
    """Run every block of each page; the demo comes first, since it makes the venv."""
    pages = [
        ROOT / "README.md",
        *(Path(word).absolute() for word in sys.argv[1:] if word != "--write"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "tfwright")
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        printed = ran(DEMO, clone)
        ran("invoke --version | grep tfwright", clone)
        text = pages[0].read_text("utf-8")
        if "--write" in sys.argv:
            shown = f"$ {DEMO}\n{printed.split(' ...')[-1].lstrip()}"
            text = BLOCK.sub(
                lambda found: f"```console\n{shown}```" if f"$ {DEMO}\n" in found[2] else found[0],
                text,
            )
            pages[0].write_text(text, "utf-8")
        for page in pages:
            for needs, block in BLOCK.findall(page.read_text("utf-8")):
                if needs:
                    continue
                for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                    command, _, shown = step.partition("\n")
                    output = printed if command == DEMO else ran(command, clone)
                    # The same compiler and Python give the same bytes.
                    exact = MADE_WITH.findall(shown) == MADE_WITH.findall(output)
                    known = " ".join(plain(line, exact=exact) for line in output.splitlines())
                    wanted = [plain(line, exact=exact) for line in shown.splitlines()]
                    # Three dots stand for what a page leaves out.
                    missing = [
                        line
                        for line in wanted
                        if any(part.strip() not in known for part in line.split("..."))
                    ]
                    if missing:
                        sys.exit(
                            "\n".join(["README shows what was not printed:", *missing, "", output])
                        )


if __name__ == "__main__":
    main()
