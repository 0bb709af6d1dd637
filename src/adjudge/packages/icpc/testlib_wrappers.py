"""testlib programs behind the ICPC interface: a second C++ file beside the unchanged source.

Before ``main`` starts, the added file forks. The child continues as the original program; the parent waits for it and
translates its exit code: testlib's 0 becomes 42, its rejections 43, everything else stays a judge error. Points that a
checker gives become a score file if the problem is scored, otherwise acceptance. glibc passes ``argv`` to such
functions, so the arguments of a checker are reordered in place.
"""

from __future__ import annotations

from typing import Final

from adjudge.domain.programs import FileRef, Program, ScoreUnit

WRAPPER = "icpc_interface.cpp"
_HEAD = """#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

static int child_code(pid_t child) {
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

"""
_TRANSLATE = """static int translated(int code) {
    return code == 0 ? 42 : code == 1 || code == 2 || code == 4 || code == 8 ? 43 : 1;
}

"""
_UNSCORED = (
    _TRANSLATE
    + """static int judged(int code, const std::string &, long) { return code == 7 ? 42 : translated(code); }

"""
)
_SCORED = (
    _TRANSLATE
    + """static int scored(const std::string &path, const std::string &value) {
    FILE *file = fopen(path.c_str(), "w");
    return file && fprintf(file, "%s\\n", value.c_str()) > 0 && !fclose(file) ? 42 : 1;
}

// The checker's message, from where it begins, says which points it gave.
static int judged(int code, const std::string &feedback, long start) {
    char line[512] = "", value[64] = "";
    int percent = 0;
    FILE *said = fopen((feedback + "judgemessage.txt").c_str(), "r");
    if (!said || fseek(said, start, SEEK_SET) || !fgets(line, sizeof line, said)) line[0] = 0;
    if (said) fclose(said);
    if (sscanf(line, "partially correct (%d)", &percent) == 1) {
        return scored(feedback + "score_multiplier.txt", std::to_string(percent / 100.0));
    }
    if (code != 7) return translated(code);
    bool has_points = sscanf(line, "points %63[0-9.+-]", value) == 1 ||
                      sscanf(line, "points_info=%*s %63[0-9.+-]", value) == 1;
    return has_points ? scored(feedback + SCORE_FILE, SCORE_VALUE) : 1;
}

"""
)
_CHECKER = """// ICPC: input answer feedback_dir < output. testlib: input output answer, its message on stderr.
__attribute__((constructor)) static void run_as_output_validator(int argc, char **argv, char **) {
    if (argc != 4) _exit(1);
    static std::string feedback, output;
    feedback = argv[3];
    output = feedback + "output.tmp";
    int copy = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (copy < 0) _exit(1);
    static char buffer[1 << 16];
    for (ssize_t got; (got = read(0, buffer, sizeof buffer)) != 0;) {
        if (got < 0 || write(copy, buffer, got) != got) _exit(1);
    }
    if (close(copy)) _exit(1);
    struct stat known;
    long start = stat((feedback + "judgemessage.txt").c_str(), &known) ? 0 : known.st_size;
    pid_t child = fork();
    if (child < 0) _exit(1);
    if (child == 0) {
        int message = open((feedback + "judgemessage.txt").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (message < 0 || dup2(message, 2) < 0) _exit(3);
        argv[3] = argv[2];
        argv[2] = &output[0];
        return;
    }
    int code = child_code(child);
    unlink(output.c_str());
    _exit(judged(code, feedback, start));
}
"""
VALIDATOR = (
    _HEAD
    + """// ICPC: the input on stdin, exit code 42 for valid. testlib: the same with exit code 0.
__attribute__((constructor)) static void run_as_input_validator(int, char **, char **) {
    pid_t child = fork();
    if (child < 0) _exit(1);
    if (child > 0) _exit(child_code(child) == 0 ? 42 : 43);
}
"""
)


_SCORES: Final = {
    ScoreUnit.ABSOLUTE: ("score.txt", "value"),
    ScoreUnit.FRACTION: ("score_multiplier.txt", "value"),
    ScoreUnit.PERCENT: ("score_multiplier.txt", "std::to_string(atof(value) / 100)"),
}


def checker_wrapper(unit: ScoreUnit | None) -> str:
    """The wrapper of a checker whose points have ``unit``, which is None if the problem is not scored."""
    if unit is None:
        return _HEAD + _UNSCORED + _CHECKER
    file, value = _SCORES[unit]
    return _HEAD + _SCORED.replace("SCORE_FILE", f'"{file}"').replace("SCORE_VALUE", value) + _CHECKER


def is_wrappable(program: Program) -> bool:
    """Whether the program is one C++ source, possibly with headers."""
    return len(program.files) == 1 and (program.language == "cpp" or program.files[0].name.endswith((".cpp", ".cc")))


def wrap_program(program: Program, folder: str, wrapper: str) -> tuple[Program, dict[str, str | bytes]]:
    """The program with its wrapper, as it will be in ``folder``, and the sources of its files."""
    name = program.files[0].name.rpartition(".")[0] or "program"
    base = f"{folder}/{name}"
    contents: dict[str, str | bytes] = {f"{base}/{WRAPPER}": wrapper.encode()}
    for ref in (*program.files, *program.support):
        contents[f"{base}/{ref.name}"] = ref.path
    refs = tuple(FileRef(path[len(base) + 1 :], path) for path in sorted(contents, key=str.encode))
    return Program(name, refs), contents
