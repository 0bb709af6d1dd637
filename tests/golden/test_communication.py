"""Communication problems as CMS runs them: a manager and the submission's processes, joined by fifos."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from adjudge.domain.problem import Problem, ProblemMode
from adjudge.domain.programs import Interactor, InteractorProtocol, UserIO
from adjudge.domain.verdict import Verdict
from adjudge.judge.pipeline import Judge
from tests.golden.package_builder import LIMITS, PackageBuilder, judged

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def files(tmp_path: Path) -> PackageBuilder:
    return PackageBuilder(tmp_path)


def communication(files: PackageBuilder, manager: str, name: str = "manager.py", **fields: object) -> Problem:
    """A problem of one test, whose input is 21."""
    interactor = Interactor(InteractorProtocol.CMS, files.program(name, manager), **fields)  # type: ignore[arg-type]
    return files.problem(("21\n", ""), mode=ProblemMode.COMMUNICATION, interactor=interactor)


MANAGER = """
read -r number
echo "$number" > "$2"
read -r back < "$1"
if [ "$back" = $((number * 2)) ]; then echo 1.0; else echo 0.0; fi
echo said "$back" >&2
"""


@pytest.mark.parametrize(
    ("user_io", "program", "verdict"),
    [
        (UserIO.STD, "read -r n; echo $((n * 2))", "AC"),
        (UserIO.STD, "read -r n; echo $((n * 3))", "WA"),
        (UserIO.STD, "exit 3", "RE"),
        (UserIO.FIFO, 'read -r n < "$1"; echo $((n * 2)) > "$2"', "AC"),
    ],
)
async def test_communication(judge: Judge, files: PackageBuilder, user_io: UserIO, program: str, verdict: str) -> None:
    interactor = Interactor(InteractorProtocol.CMS, files.program("manager.sh", MANAGER), user_io=user_io)
    problem = files.problem(("21\n", ""), mode=ProblemMode.COMMUNICATION, interactor=interactor)
    result = await judged(judge, problem, files, program)
    assert result.verdict == verdict, result.message


async def test_late_manager_reads_data_of_ended_process(judge: Judge, files: PackageBuilder) -> None:
    manager = MANAGER.replace("read -r back", "sleep 0.2\nread -r back")
    interactor = Interactor(InteractorProtocol.CMS, files.program("manager.sh", manager))
    problem = files.problem(("21\n", ""), mode=ProblemMode.COMMUNICATION, interactor=interactor)
    result = await judged(judge, problem, files, "read -r n; echo $((n * 2))")
    assert result.verdict is Verdict.AC, result.message


RELAY = """
read -r number
echo "$number" > "$2"
read -r first < "$1"
echo "$first" > "$4"
read -r second < "$3"
if [ "$second" = $((number + 2)) ]; then echo 1.0; else echo 0.0; fi
"""


async def test_communication_of_two_processes(judge: Judge, files: PackageBuilder) -> None:
    interactor = Interactor(InteractorProtocol.CMS, files.program("manager.sh", RELAY), processes=2)
    problem = files.problem(("21\n", ""), mode=ProblemMode.COMMUNICATION, interactor=interactor)
    result = await judged(judge, problem, files, "read -r n; echo $((n + 1))")
    assert result.verdict is Verdict.AC, result.message


OPEN = """
import sys
first, second = sys.argv[1:3]
modes = {{first: "{first}", second: "{second}"}}
opened = {{path: open(path, modes[path]) for path in {order}}}
reader = next(file for file in opened.values() if file.mode == "r")
writer = next(file for file in opened.values() if file.mode == "w")
"""
ASKS = """
number = int(sys.stdin.readline())
print(number, file=writer, flush=True)
answer = reader.readline().strip()
print(1.0 if answer == str(2 * number) else 0.0)
"""
ANSWERS = "print(2 * int(reader.readline()), file=writer, flush=True)"
ORDERS = ("(first, second)", "(second, first)")


@pytest.mark.parametrize(
    ("manager_order", "process_order", "is_documented_direction"),
    list(itertools.product(ORDERS, ORDERS, (True, False))),
)
async def test_fifos_work_in_any_order_and_direction(
    judge: Judge, files: PackageBuilder, manager_order: str, process_order: str, *, is_documented_direction: bool
) -> None:
    """CMS's own example writes to the first fifo and reads from the second, against its documentation."""
    first, second = ("r", "w") if is_documented_direction else ("w", "r")
    problem = communication(
        files, OPEN.format(first=first, second=second, order=manager_order) + ASKS, user_io=UserIO.FIFO
    )
    program = OPEN.format(first=first, second=second, order=process_order) + ANSWERS
    result = await judged(judge, problem, files, program, "python3")
    assert result.verdict is Verdict.AC, result.message


MANAGER_READS_FIRST = """
import sys
answer = open(sys.argv[1]).read()
print(1.0 if answer else 0.0)
print(repr(answer), file=sys.stderr)
"""
MANAGER_WRITES_MUCH = """
import sys
with open(sys.argv[2], "w") as writer:
    writer.write("7\\n" * 1_000_000)
print(1.0 if open(sys.argv[1]).read() == "7\\n" else 0.0)
"""


@pytest.mark.parametrize("user_io", UserIO)
@pytest.mark.parametrize("manager", [MANAGER_READS_FIRST, MANAGER_WRITES_MUCH])
@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        pytest.param("pass", "WA", id="never opens"),
        pytest.param("import sys\nsys.exit(3)", "RE", id="fails"),
    ],
)
async def test_silent_exit_is_judged_immediately(
    judge: Judge, files: PackageBuilder, user_io: UserIO, manager: str, program: str, verdict: str
) -> None:
    result = await judged(judge, communication(files, manager, user_io=user_io), files, program, "python3")
    assert result.verdict == verdict, result.message
    assert result.wall_ms < LIMITS.wall_ms, "the manager was left waiting until its wall time limit"


@pytest.mark.parametrize("user_io", UserIO)
async def test_process_reads_eof_after_manager_ends(judge: Judge, files: PackageBuilder, user_io: UserIO) -> None:
    manager = "print(0.0)"
    program = """
import sys
reader = open(sys.argv[1]) if sys.argv[1:] else sys.stdin
writer = open(sys.argv[2], "w") if sys.argv[1:] else sys.stdout
assert reader.read() == ""
writer.write("x" * 1_000_000)
"""
    result = await judged(judge, communication(files, manager, user_io=user_io), files, program, "python3")
    assert result.verdict is Verdict.WA, result.message


async def test_manager_rejection_precedes_process_failure(judge: Judge, files: PackageBuilder) -> None:
    result = await judged(judge, communication(files, "print(0.0)"), files, "int(input())", "python3")
    assert result.verdict is Verdict.WA, result.message


FORGED = """
import sys
lines = [(sys.argv[1], sys.argv[2]), (sys.argv[3], sys.argv[4])]
said = [open(from_process).read() for from_process, _ in lines]
print(1.0 if "forged" in said[1] else 0.0)
print(said, file=sys.stderr)
"""
FORGER = """
import os, sys
number = int(sys.argv[-1])
if number == 0:
    own = {"from0", "to0"}
    assert set(os.listdir("/fifos")) <= own, os.listdir("/fifos")
    tops = [f"/{name}" for name in os.listdir("/") if name not in ("usr", "lib", "lib64", "bin", "sbin", "proc", "sys")]
    found = [os.path.join(place, name) for top in tops for place, _, names in os.walk(top) for name in names
             if name in ("from1", "to1")]
    tried = ["/fifos/from1", "/fifos/to1", "/fifos/../fifos/from1", *found]
    tried += [f"/proc/{pid}/fd/{fd}" for pid in os.listdir("/proc") if pid.isdigit() and pid != str(os.getpid())
              for fd in range(10)]
    for path in tried:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            continue
        os.write(fd, b"forged")
    try:
        fd = os.open("/fifos/from1", os.O_WRONLY | os.O_CREAT)
    except OSError:
        pass
    else:
        sys.exit("the directory can be written to")
"""


@pytest.mark.parametrize("user_io", UserIO)
async def test_process_cannot_write_to_fifos_of_another(judge: Judge, files: PackageBuilder, user_io: UserIO) -> None:
    problem = communication(files, FORGED, user_io=user_io, processes=2)
    program = FORGER
    if user_io is UserIO.STD:
        program = program.replace('set(os.listdir("/fifos")) <= own', 'not os.path.exists("/fifos")')
    result = await judged(judge, problem, files, program, "python3")
    assert result.verdict is Verdict.WA, result.message
    assert "forged" not in result.cases[0].message


OPENS_IN_A_LOOP = """
import os, sys
while True:
    os.close(os.open(sys.argv[1], os.O_RDWR | os.O_NONBLOCK))
"""


async def test_process_that_opens_fifo_in_a_loop_is_runtime_error(judge: Judge, files: PackageBuilder) -> None:
    problem = communication(files, MANAGER_READS_FIRST, user_io=UserIO.FIFO)
    result = await judged(judge, problem, files, OPENS_IN_A_LOOP, "python3")
    assert result.verdict is Verdict.RE, result.message
    assert "opened its fifos too many times" in result.cases[0].message
