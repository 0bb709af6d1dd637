"""The services of one API server, as the application factories take them.

Only ``create_app`` and ``web.app.install`` take all of them; a router takes the services that its routes call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adjudge.api.sse import SseConnections
from adjudge.domain.ids import IdFactory
from adjudge.judge.languages import Languages
from adjudge.services.account import AccountService
from adjudge.services.admission import AdmissionController
from adjudge.services.awards import AwardService
from adjudge.services.balloons import BalloonService
from adjudge.services.basic_auth import BasicAuthentication
from adjudge.services.ccs import CcsService
from adjudge.services.ccs_changes import CcsChangeService
from adjudge.services.ccs_feed import CcsFeedService
from adjudge.services.ccs_files import CcsFileService
from adjudge.services.chain_run_files import ChainRunFileService
from adjudge.services.chain_runs import ChainRunService
from adjudge.services.chain_triggers import ChainTriggerService
from adjudge.services.chains import ChainService
from adjudge.services.clarifications import ClarificationService
from adjudge.services.contest_accounts import ContestAccountService
from adjudge.services.contest_groups import ContestGroupService
from adjudge.services.contest_invitations import ContestInvitationService
from adjudge.services.contest_lifecycle import ContestLifecycleService
from adjudge.services.contest_materials import ContestMaterialService
from adjudge.services.contest_own import OwnContestService
from adjudge.services.contest_package.export import ContestPackageExporter
from adjudge.services.contest_package.importer import ContestPackageImporter
from adjudge.services.contest_problems import ContestProblemService
from adjudge.services.contest_registration import ContestRegistrationService
from adjudge.services.contest_statistics import ContestStatisticsService
from adjudge.services.contest_submissions import ContestSubmissionService
from adjudge.services.contest_tokens import ContestTokenService
from adjudge.services.contests import ContestService
from adjudge.services.domjudge import DomjudgeService
from adjudge.services.domjudge_problems import DomjudgeProblemService
from adjudge.services.evaluations import EvaluationService
from adjudge.services.executions import ExecutionService
from adjudge.services.health import Check
from adjudge.services.judge0 import Judge0Service
from adjudge.services.judging_control import JudgingControlService
from adjudge.services.judging_pause import JudgingPauseService
from adjudge.services.jury_dashboard import JuryDashboardService
from adjudge.services.jury_submissions import JurySubmissionService
from adjudge.services.languages import LanguageService
from adjudge.services.login import LoginService
from adjudge.services.ops import OpsService
from adjudge.services.participants import ParticipantService
from adjudge.services.password_reset import PasswordResetService
from adjudge.services.prints import PrintService
from adjudge.services.problem_imports import ProblemImportService
from adjudge.services.problem_revisions import ProblemRevisionService
from adjudge.services.problem_stats import ProblemStatsService
from adjudge.services.problems import ProblemService
from adjudge.services.ratings import RatingService
from adjudge.services.reauthentication import ReauthenticationService
from adjudge.services.rejudge import RejudgeService
from adjudge.services.scoreboard import ScoreboardService
from adjudge.services.scoreboard_exports import ScoreboardExportService
from adjudge.services.secrets import SecretService
from adjudge.services.submission_events import SubmissionEventService
from adjudge.services.submission_sources import SubmissionSourceService
from adjudge.services.submissions import SubmissionService
from adjudge.services.submit import SubmitService
from adjudge.services.system_metrics import SystemMetrics
from adjudge.services.team_import import TeamImportService
from adjudge.services.team_photos import TeamPhotoService
from adjudge.services.user_events import UserEventService
from adjudge.services.users import UserService
from adjudge.services.viewer import ContestOnlyMode, CredentialCache
from adjudge.services.visible_submissions import VisibleSubmissionService
from adjudge.services.webhooks import WebhookService
from adjudge.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Composed by ``cli.wiring.services``."""

    settings: Settings
    new_id: IdFactory
    credentials: CredentialCache
    basic_auth: BasicAuthentication
    admission: AdmissionController
    connections: SseConnections
    languages: Languages
    checks: Mapping[str, Check]
    """Component name → check, for ``/health/ready``."""
    accounts: AccountService
    logins: LoginService
    users: UserService
    password_resets: PasswordResetService
    problems: ProblemService
    problem_stats: ProblemStatsService
    revisions: ProblemRevisionService
    imports: ProblemImportService
    language_service: LanguageService
    chains: ChainService
    chain_runs: ChainRunService
    chain_triggers: ChainTriggerService
    run_files: ChainRunFileService
    secrets: SecretService
    submissions: SubmissionService
    sources: SubmissionSourceService
    submitter: SubmitService
    executions: ExecutionService
    evaluations: EvaluationService
    domjudge: DomjudgeService
    domjudge_problems: DomjudgeProblemService
    judge0: Judge0Service
    events: SubmissionEventService
    user_events: UserEventService
    rejudges: RejudgeService
    webhooks: WebhookService
    ops: OpsService
    system_metrics: SystemMetrics
    contests: ContestService
    reauthentication: ReauthenticationService
    contest_submissions: ContestSubmissionService
    jury_submissions: JurySubmissionService
    visible_submissions: VisibleSubmissionService
    judging_pauses: JudgingPauseService
    judging_control: JudgingControlService
    jury_dashboard: JuryDashboardService
    contest_problems: ContestProblemService
    own_contests: OwnContestService
    contest_lifecycle: ContestLifecycleService
    ratings: RatingService
    clarifications: ClarificationService
    contest_registrations: ContestRegistrationService
    contest_participants: ParticipantService
    contest_invitations: ContestInvitationService
    contest_only: ContestOnlyMode
    contest_groups: ContestGroupService
    contest_accounts: ContestAccountService
    team_imports: TeamImportService
    team_photos: TeamPhotoService
    contest_tokens: ContestTokenService
    scoreboards: ScoreboardService
    scoreboard_exports: ScoreboardExportService
    awards: AwardService
    contest_statistics: ContestStatisticsService
    balloons: BalloonService
    prints: PrintService
    contest_materials: ContestMaterialService
    ccs: CcsService
    contest_exports: ContestPackageExporter
    contest_imports: ContestPackageImporter
    ccs_changes: CcsChangeService
    ccs_files: CcsFileService
    ccs_feed: CcsFeedService
