"""The interpreter that the build runs, as an archive for each version and platform."""

DEFAULT_BASE_URL = "https://gone.invalid/pythons"

TOOL_VERSIONS = {
    "3.13.5": {
        "url": "standalone/cpython-{python_version}-{platform}.tar",
        "sha256": {
            "x86_64-unknown-linux-gnu": "f7526d482faec27e6880e2d978926765dfb559631b6b127610a31d09024c5b18",
        },
    },
}

PLATFORM = "x86_64-unknown-linux-gnu"

def _python(context):
    wanted = context.os.environ.get("HERMETIC_PYTHON_VERSION", "3.13")
    versions = [each for each in context.attr.url_dict if each.startswith(wanted + ".")]
    if not versions:
        fail("There is no Python %s among %s." % (wanted, context.attr.url_dict.keys()))
    url, sha256 = context.attr.url_dict[versions[-1]]
    context.download_and_extract(url = url, sha256 = sha256)
    context.file("BUILD", 'exports_files(["bin/python3"])')

_python_repository = repository_rule(
    implementation = _python,
    attrs = {"url_dict": attr.string_list_dict()},
    environ = ["HERMETIC_PYTHON_VERSION"],
)

def python_repository(name):
    """Declare the interpreter.

    Args:
      name: of the repository.
    """
    url_dict = {}
    for version, entry in TOOL_VERSIONS.items():
        url = entry["url"].format(python_version = version, platform = PLATFORM)
        url_dict[version] = [DEFAULT_BASE_URL + "/" + url, entry["sha256"][PLATFORM]]
    _python_repository(name = name, url_dict = url_dict)
