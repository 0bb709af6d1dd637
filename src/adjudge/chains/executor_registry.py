"""Which executors there are: the built-in ones and those of other packages, built with the parts they ask for.

An entry point of the group ``adjudge.node_executors`` names a class that satisfies ``executor.Executor``; the built-in
ones are listed in ``BUILT_IN`` in the same form, so that they do not depend on installed metadata. ``type`` and
``cfg_schema`` are read from the class, so that a process without a sandbox can check definitions; it is built only
where nodes run. It gets the parts that its constructor names as keywords: ``database``, ``blobs``, ``judge`` and so on.

An executor that cannot be loaded, described or built disables itself with a message, and nothing else: chains that do
not use it never notice.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from adjudge.chains.executor import Executor
from adjudge.chains.validation import check_cfg, check_schema
from adjudge.domain.errors import InvalidInput
from adjudge.observe.logs import get_logger

GROUP: Final = "adjudge.node_executors"
_OURS: Final = "adjudge"
BUILT_IN: Final[Mapping[str, str]] = {
    "chain": "adjudge.executors.subchain:SubchainExecutor",
    "contest.export": "adjudge.executors.contest_export:ContestExportExecutor",
    "contest.finalize": "adjudge.executors.contests:ContestFinalizeExecutor",
    "contest.freeze": "adjudge.executors.contests:ContestFreezeExecutor",
    "contest.rejudge_preview": "adjudge.executors.contest_rejudge:ContestRejudgePreviewExecutor",
    "contest.start": "adjudge.executors.contests:ContestStartExecutor",
    "contest.thaw": "adjudge.executors.contests:ContestThawExecutor",
    "http": "adjudge.executors.http:HttpExecutor",
    "judge": "adjudge.executors.judge:JudgeExecutor",
    "noop": "adjudge.executors.basic:NoopExecutor",
    "notify": "adjudge.executors.http:NotifyExecutor",
    "problem.check": "adjudge.executors.problems:ProblemCheckExecutor",
    "problem.generate": "adjudge.executors.problems:ProblemGenerateExecutor",
    "problem.list": "adjudge.executors.problems:ProblemListExecutor",
    "problem.publish": "adjudge.executors.problems:ProblemPublishExecutor",
    "problem.verify": "adjudge.executors.problems:ProblemVerifyExecutor",
    "rejudge": "adjudge.executors.rejudge:RejudgeExecutor",
    "sandbox": "adjudge.executors.sandbox:SandboxExecutor",
    "sleep": "adjudge.executors.basic:SleepExecutor",
    "wait_approval": "adjudge.executors.approval:WaitApprovalExecutor",
}
"""Type → class of the built-in executors."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ExecutorDescriptor:
    """One executor, as its class describes itself."""

    type: str
    cfg_schema: Mapping[str, Any]
    factory: Callable[..., Any]
    distribution: str
    """The package that brought it."""

    @property
    def summary(self) -> str:
        """What it does: its docstring."""
        return inspect.cleandoc(self.factory.__doc__ or "")


@dataclass(frozen=True, slots=True)
class DisabledExecutor:
    """An executor that was found and cannot be used, and why."""

    type: str
    reason: str


@dataclass(frozen=True)
class ExecutorRegistry:
    """The executors that were found, and those that disabled themselves."""

    executors: Mapping[str, ExecutorDescriptor]
    disabled: Mapping[str, DisabledExecutor] = field(default_factory=dict)

    def types(self) -> list[str]:
        """The types that a node may have, in order."""
        return sorted(self.executors)

    def describe(self, type_name: str, place: str = "type") -> ExecutorDescriptor:
        """The executor of a type, or a refusal that says what is known."""
        if (found := self.executors.get(type_name)) is not None:
            return found
        if (broken := self.disabled.get(type_name)) is not None:
            raise InvalidInput(f"{place}: the executor {type_name!r} is disabled: {broken.reason}", field=place)
        raise InvalidInput(
            f"{place}: unknown node type {type_name!r}; available: {', '.join(self.types())}.", field=place
        )

    def check(self, type_name: str, cfg: Any, *, place: str = "cfg", templated: bool = False) -> None:
        """Refuse a cfg that the type's schema does not allow; ``templated``: expressions may still stand in it."""
        check_cfg(self.describe(type_name).cfg_schema, cfg, place=place, templated=templated)

    def build(self, parts: Mapping[str, Any]) -> dict[str, Executor]:
        """Build every executor whose needs ``parts`` meets; one that fails is left out, with a message in the log."""
        built: dict[str, Executor] = {}
        for described in self.executors.values():
            try:
                built[described.type] = _built(described, parts)
            except Exception as error:  # noqa: BLE001 — a third party's constructor may raise anything
                _log.warning("executor_disabled", type=described.type, reason=_text(error))
        return built


@cache
def installed_executors() -> ExecutorRegistry:
    """The executors of this installation, looked for once, when somebody first asks."""
    return discover_executors()


def discover_executors(points: Iterable[EntryPoint] | None = None) -> ExecutorRegistry:
    """Look for executors. The first of a type stands, ours before others'; a second is disabled."""
    known: dict[str, ExecutorDescriptor] = {}
    disabled: dict[str, DisabledExecutor] = {}
    every = _installed() if points is None else points
    for point in sorted(every, key=lambda item: (_distribution(item) != _OURS, _distribution(item), item.name)):
        try:
            described = _described(point)
            if described.type in known:
                first = known[described.type].distribution
                raise ValueError(f"the type {described.type!r} is already brought by {first}")
        except Exception as error:  # noqa: BLE001 — importing a third party's module may raise anything
            disabled.setdefault(point.name, DisabledExecutor(point.name, f"{_distribution(point)}: {_text(error)}"))
            _log.warning("executor_disabled", type=point.name, package=_distribution(point), reason=_text(error))
        else:
            known[described.type] = described
    return ExecutorRegistry(known, {name: item for name, item in disabled.items() if name not in known})


def _installed() -> list[EntryPoint]:
    """The built-in executors and those of other packages."""
    others = [point for point in entry_points(group=GROUP) if _distribution(point) != _OURS]
    return [*(EntryPoint(name, value, GROUP) for name, value in BUILT_IN.items()), *others]


def _described(point: EntryPoint) -> ExecutorDescriptor:
    factory = point.load()
    if not isinstance(factory, type):
        raise TypeError(f"{point.value} is not a class")
    type_name, schema = getattr(factory, "type", None), getattr(factory, "cfg_schema", None)
    if type_name != point.name:
        raise ValueError(f"its type is {type_name!r} and its entry point is named {point.name!r}; make them equal")
    if not isinstance(schema, Mapping):
        raise TypeError("its cfg_schema is missing")
    check_schema(schema)
    if not inspect.iscoroutinefunction(getattr(factory, "execute", None)):
        raise TypeError("it has no 'async def execute(self, context)'")
    return ExecutorDescriptor(type_name, schema, factory, _distribution(point))


def _built(described: ExecutorDescriptor, parts: Mapping[str, Any]) -> Executor:
    wanted = inspect.signature(described.factory).parameters.values()
    given = {item.name: parts[item.name] for item in wanted if item.name in parts}
    missing = [
        item.name
        for item in wanted
        if item.name not in given
        and item.default is item.empty
        and item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
    ]
    if missing:
        raise TypeError(f"unknown constructor parameters {', '.join(missing)}; available: {', '.join(parts)}")
    executor: Executor = described.factory(**given)
    return executor


def _distribution(point: EntryPoint) -> str:
    """The package that brought an entry point; the built-in ones are not read from metadata."""
    return point.dist.name if point.dist is not None else _OURS


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
