from tfwright.tools.git.fitting import Hunk


def lines(text: str) -> tuple[str, ...]:
    return tuple(text.splitlines(keepends=True))


TREE = lines("""\
load(
    "//tools:configure.bzl",
    "configure",
)

def workspace():
    archive(
        name = "curl",
        strip_prefix = "curl-7.60.0",
    )

    archive(
        name = "grpc",
        sha256 = "50db",
        strip_prefix = "grpc-1.13.0",
        system_build_file = "grpc.BUILD",
    )
""")


def test_brackets_do_not_decide_where_a_hunk_belongs() -> None:
    before = '        strip_prefix = "grpc-1.12.0",\n    )\n'
    after = before.replace("    )", '        patch_file = "p",\n    )')
    fit = Hunk(3, lines(before), lines(after)).fit(TREE)
    assert (fit.verdict, fit.line) == ("fuzz", 15)
    assert fit.differing[0] == (
        '        strip_prefix = "grpc-1.12.0",',
        '        strip_prefix = "grpc-1.13.0",',
    )


def test_a_miss_in_the_context_alone_is_called_so_and_one_in_the_change_is_not() -> None:
    before = lines('        sha256 = "60db",\n        strip_prefix = "grpc-1.13.0",\n    )\n')
    context = Hunk(14, before, (before[0], before[2])).fit(TREE)
    assert context.verdict == "fuzz"
    assert context.differing == (
        ('        sha256 = "60db",', '        sha256 = "50db",'),
        ("", '        system_build_file = "grpc.BUILD",'),
    )
    changed = Hunk(14, before, before[1:]).fit(TREE)
    assert changed.verdict == "changed"


def test_lines_that_upstream_put_in_between_do_not_shift_the_others() -> None:
    before = lines('        name = "grpc",\n        strip_prefix = "grpc-1.13.0",\n    )\n')
    fit = Hunk(1, before, (before[0], before[2])).fit(TREE)
    assert fit.line == 13
    assert fit.differing[0] == ("", '        sha256 = "50db",')


def test_what_upstream_did_in_other_words_is_found_where_it_is() -> None:
    tree = lines(
        'a(\n  "%s.lds" % name,\n)\nb\nb\nb\nb\nb\nb\nb\nb\nb\nc(\n    "$(at %s.lds)" % name,\n)\n'
    )
    hunk = Hunk(2, lines('  "%s.lds"%name,\n'), lines('  "$(at %s.lds)"%name,\n'))
    fit = hunk.fit(tree)
    assert (fit.verdict, fit.line) == ("reformatted", 14)


def test_nothing_like_it_is_missing() -> None:
    fit = Hunk(1, lines("int main() {\n  return 0;\n}\n"), ()).fit(TREE)
    assert fit.verdict == "missing"
