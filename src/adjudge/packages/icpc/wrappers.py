"""testlib programs behind the ICPC interface: a small C++ program around the unmodified source.

The original's ``main`` is renamed and called in a child process, whose exit code is translated: testlib's 0 becomes
42, its refusals 43, and everything else stays the judge's error that it is. The child is needed because testlib ends
the process itself.
"""

from __future__ import annotations

from adjudge.domain.programs import FileRef, Program

ORIGINAL = "original.h"
"""What the original source is called beside the wrapper; a header, so that it is not compiled by itself."""
_HEAD = """#define main original_main
#include "original.h"
#undef main

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

"""
CHECKER = (
    _HEAD
    + """// Runs a testlib checker as an ICPC output validator: input answer feedback_dir < output.
int main(int argc, char **argv) {
    if (argc < 4) return 1;
    std::string feedback = argv[3], output = feedback + "output.tmp", message = feedback + "judgemessage.txt";
    FILE *copy = std::fopen(output.c_str(), "wb");
    if (!copy) return 1;
    char buffer[1 << 16];
    for (size_t got; (got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
        if (std::fwrite(buffer, 1, got, copy) != got) return 1;
    }
    if (std::fclose(copy)) return 1;
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
        if (!std::freopen(message.c_str(), "ab", stderr)) _exit(3);
        char *arguments[] = {argv[0], argv[1], &output[0], argv[2], nullptr};
        std::exit(original_main(4, arguments));
    }
    int status = 0;
    if (waitpid(child, &status, 0) < 0) return 1;
    std::remove(output.c_str());
    if (!WIFEXITED(status)) return 1;
    switch (WEXITSTATUS(status)) {
        case 0: return 42;
        case 1: case 2: case 4: case 8: return 43;
        default: return 1;
    }
}
"""
)
VALIDATOR = (
    _HEAD
    + """// Runs a testlib validator as an ICPC input validator: the input on stdin, 42 for valid.
int main(int argc, char **argv) {
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) std::exit(original_main(argc, argv));
    int status = 0;
    if (waitpid(child, &status, 0) < 0) return 1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 42 : 43;
}
"""
)


def is_wrappable(program: Program) -> bool:
    """Whether the program is one C++ source, with headers at most."""
    return len(program.files) == 1 and (program.language == "cpp" or program.files[0].name.endswith((".cpp", ".cc")))


def wrapped(program: Program, folder: str, wrapper: str) -> tuple[Program, dict[str, str | bytes]]:
    """Return the program with its wrapper, as it will be in ``folder``, and where its files come from."""
    name = program.files[0].name.rpartition(".")[0] or "program"
    base = f"{folder}/{name}"
    contents: dict[str, str | bytes] = {
        f"{base}/{name}.cpp": wrapper.encode(),
        f"{base}/{ORIGINAL}": program.files[0].path,
    }
    for ref in program.support:
        contents[f"{base}/{ref.name}"] = ref.path
    refs = tuple(FileRef(path[len(base) + 1 :], path) for path in sorted(contents, key=str.encode))
    return Program(name, refs), contents
