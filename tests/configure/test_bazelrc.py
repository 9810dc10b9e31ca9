"""Parsing, comparing and amending bazelrc files."""

from tfwright.configure import bazelrc
from tfwright.documents.release import Release
from tfwright.rules.configurations import Setting, settings


def test_releases_before_1_2_have_another_file() -> None:
    assert bazelrc.file_name(Release(1, 1)) == "tools/bazel.rc"
    assert bazelrc.file_name(Release(1, 2)) == ".tf_configure.bazelrc"


def test_1_1_spreads_its_settings_over_two_files_which_its_candidates_name_otherwise() -> None:
    line = Release(1, 1)
    assert bazelrc.written_files(line, own_file=False)[1] == ".bazelrc"
    assert bazelrc.written_files(line, own_file=True)[1] == ".tf_configure.bazelrc"


def test_a_file_is_read_as_a_set_of_settings() -> None:
    text = (
        '# comment\nbuild:opt --copt=-O2 --host_copt=-O2\n\nbuild --action_env A="b c" # '
        "why\nbuild:mkl -c opt\nbuild --define x=y\n"
    )
    assert set(settings(text)) == {
        Setting("build", "opt", "--copt=-O2"),
        Setting("build", "opt", "--host_copt=-O2"),
        Setting("build", "", "--action_env=A=b c"),
        Setting("build", "mkl", "-c=opt"),
        Setting("build", "", "--define=x=y"),
    }


def test_order_repetition_quotes_and_spelling_make_no_difference() -> None:
    assert not bazelrc.compare(
        'build --define a="b"\nbuild --copt=-g',
        "build --copt=-g\nbuild --copt=-g\nbuild --define=a=b",
    )


def test_quotes_that_do_not_match_do_not_stop_the_comparison() -> None:
    line = 'build:opt --copt=-DX="a b'
    assert not bazelrc.compare(line, line)
    assert bazelrc.compare(line, "").only_rendered


def test_a_flag_of_one_letter_is_written_as_bazel_reads_it() -> None:
    (setting,) = settings("build -c opt")
    assert str(setting) == "build -c opt"


def test_a_setting_with_blanks_is_shown_as_bazel_would_read_it_back() -> None:
    (setting,) = settings('build --action_env A="b c"')
    assert settings(str(setting)) == [setting]


def test_lines_are_added_and_left_out_with_the_places_of_this_host() -> None:
    text = bazelrc.amend(
        "# made\nbuild --copt=-g\nbuild --define a=b\n",
        ["build --python_path=@PYTHON_BIN_PATH@"],
        ["build --define=a=b"],
        {"PYTHON_BIN_PATH": "/p"},
    )
    assert text == "# made\nbuild --copt=-g\nbuild --python_path=/p\n"


def test_of_a_line_with_several_settings_only_the_unwanted_one_is_left_out() -> None:
    written = "build:a --copt -fno-x --linkopt -lasan -c opt\n"
    difference = bazelrc.compare(written, "build:a --copt -fno-x -c opt")
    omitted = [str(setting) for setting in difference.only_rendered]
    assert omitted == ["build:a --linkopt=-lasan"]
    amended = bazelrc.amend(written, [], omitted, {})
    assert not bazelrc.compare(amended, "build:a --copt -fno-x -c opt")


def test_a_line_goes_on_after_a_backslash_at_its_end() -> None:
    joined = settings("build --copt=-g \\\n  --config=opt\n")
    assert joined == settings("build --copt=-g --config=opt")
