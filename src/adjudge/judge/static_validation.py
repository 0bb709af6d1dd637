"""Static validation: a jury program that inspects the sources of a submission before it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from adjudge.domain.limits import Limits
from adjudge.domain.problem import Group, Problem
from adjudge.domain.verdict import Verdict
from adjudge.judge.case_results import CheckResult
from adjudge.judge.checkers import FEEDBACK, read_icpc
from adjudge.judge.compile import Executable, ended
from adjudge.judge.languages import Language
from adjudge.judge.sources import ProgramSource
from adjudge.judge.workspace import Workspace
from adjudge.sandbox import InputFile, Sandbox, SandboxRunSpec


@dataclass(frozen=True, slots=True)
class StaticValidationResult:
    """Whether each group was accepted, and a rejection that applies to the whole submission."""

    accepted: dict[str, bool] = field(default_factory=dict)
    rejection: CheckResult | None = None


@dataclass(frozen=True, slots=True)
class StaticValidator:
    """``static_validator language entry_point feedback/ args``, with the sources in its work directory."""

    program: Executable
    limits: Limits
    sandbox: Sandbox

    async def validate(
        self, problem: Problem, source: ProgramSource, language: Language, main: str
    ) -> StaticValidationResult:
        """Run once per group with static validation; if no points depend on it, a rejection is the verdict."""
        outcome, place = StaticValidationResult(), _free_name(source)
        with Workspace() as workspace, workspace.scratch() as scratch:
            for group in _asking(problem):
                spec = SandboxRunSpec(
                    argv=self.program.argv(
                        self.limits.memory_bytes,
                        [language.code, main, f"/work/{place}/", *group.static_validator_args],
                    ),
                    limits=self.limits,
                    env=self.program.env,
                    files=(
                        *(InputFile(file.name, file.data) for file in source.files),
                        InputFile(f"{place}/.keep", b""),
                    ),
                    mounts=self.program.mounts,
                    collect=(place,),
                    collect_to=scratch.clear_feedback(),
                )
                report = ended(await self.sandbox.run(spec), self.program, "the static validator")
                if place != FEEDBACK and (scratch.feedback / place).exists():
                    (scratch.feedback / place).rename(scratch.feedback / FEEDBACK)
                check = read_icpc(report, scratch.feedback)
                outcome.accepted[group.path] = check.verdict is Verdict.AC
                if check.verdict is Verdict.SE or (check.verdict is not Verdict.AC and not group.static_points):
                    return StaticValidationResult(outcome.accepted, check)
        return outcome


def _free_name(source: ProgramSource) -> str:
    """A name for the feedback directory that no file of the submission has."""
    taken = {file.name.partition("/")[0] for file in source.files}
    names = (FEEDBACK, *(f"{FEEDBACK}-{number}" for number in range(1, len(taken) + 1)))
    return next(name for name in names if name not in taken)


def _asking(problem: Problem) -> list[Group]:
    """The groups with static validation; if none has, the root."""
    asking = [group for group in problem.groups if group.static_points or group.static_validator_args]
    return asking or [problem.group("")]
