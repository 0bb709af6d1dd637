"""What DMOJ compiles into submissions: signature graders, and unbuffered output."""

from __future__ import annotations

from dataclasses import replace

from adjudge.domain.programs import FileRef, Stub
from adjudge.packages.dmoj.scope import FILE, Scope
from adjudge.packages.files import PackageFiles
from adjudge.packages.safe_yaml import YamlMap, YamlSection

_EXTENSIONS = {"c": "c", "cpp": "cpp"}
_ENTRY = "adjudge_entry"
_UNBUFFERED = "adjudge_unbuffered"
_RENAMED_MAIN = "#define main adjudge_unused_main\n"
_SET_UNBUFFERED = (
    "#include <stdio.h>\n"
    "__attribute__((constructor)) static void adjudge_set_unbuffered(void) { setvbuf(stdout, 0, _IONBF, 0); }\n"
)
SIGNATURE_LANGUAGES = tuple(_EXTENSIONS)


def read_signature(files: PackageFiles, top: Scope) -> tuple[Stub, ...]:
    """Read ``signature_grader``: a main program of the jury that calls what the submission defines.

    The entry is compiled in the submission's language whatever its name, as DMOJ does.
    """
    node = top.node("signature_grader")
    if node is None:
        return ()
    section = YamlSection(node if isinstance(node, YamlMap) else None, FILE, top.findings, "signature_grader.")
    entry, header = section.take_text("entry"), section.take_text("header")
    for key, name in (("entry", entry), ("header", header)):
        if name not in files:
            section.error(key, f"{name[:80]!r} is not in the package.", "Add it.")
            return ()
    keeps_main = section.take_flag("allow_main", default=False)
    prelude = f'#include "{header}"\n' + ("" if keeps_main else _RENAMED_MAIN)
    return tuple(
        Stub(
            language,
            (FileRef(f"{_ENTRY}.{extension}", entry), FileRef(header, header)),
            prelude=prelude,
            compile_flags=("-DSIGNATURE_GRADER",),
        )
        for language, extension in _EXTENSIONS.items()
    )


def unbuffered_file(files: PackageFiles, extension: str) -> FileRef:
    """Derive a source that makes stdout unbuffered before ``main`` runs.

    DMOJ preloads a library instead, which has no effect on statically linked programs.
    """
    name = f"{_UNBUFFERED}.{extension}"
    if name not in files:
        files.put_derived(name, _SET_UNBUFFERED.encode())
    return FileRef(name, name)


def with_unbuffered(files: PackageFiles, stubs: tuple[Stub, ...]) -> tuple[Stub, ...]:
    """Make submissions write unbuffered: C and C++ by a source, Python by an environment variable."""
    known = {stub.language: stub for stub in stubs}
    made = []
    for language, extension in _EXTENSIONS.items():
        stub = known.get(language, Stub(language, ()))
        made.append(replace(stub, files=(*stub.files, unbuffered_file(files, extension))))
    if not stubs:
        made.append(Stub("python3", (), run_env={"PYTHONUNBUFFERED": "1"}))
    return tuple(made)
