"""Composes the services of an API server from its drivers."""

from __future__ import annotations

from collections.abc import Mapping

from adjudge.api.container import Services
from adjudge.api.schema import problems as schema
from adjudge.api.sse import SseConnections
from adjudge.blobs.driver import BlobStore
from adjudge.cache.token_buckets import TokenBuckets
from adjudge.cache.two_tier import TwoTierCache
from adjudge.chains.engine import ChainEngine
from adjudge.cli.wiring.accounts import make_password_resets
from adjudge.cli.wiring.mail import mail_base_url
from adjudge.contests.listener import CONTEST_LISTENER
from adjudge.domain.ids import IdFactory, new_id
from adjudge.judge.languages import Languages
from adjudge.packages.source_archive import FileLimits
from adjudge.registry.driver import Registry
from adjudge.services.account import AccountService
from adjudge.services.admission import AdmissionController
from adjudge.services.awards import AwardService
from adjudge.services.balloons import BalloonService
from adjudge.services.basic_auth import BasicAuthentication
from adjudge.services.ccs import CcsService
from adjudge.services.ccs_changes import CcsChangeService
from adjudge.services.ccs_feed import CcsFeedService
from adjudge.services.ccs_feed_watcher import FeedWatcher
from adjudge.services.ccs_files import CcsFileService
from adjudge.services.ccs_loading import CcsLoader
from adjudge.services.chain_run_files import ChainRunFileService
from adjudge.services.chain_runs import ChainRunService
from adjudge.services.chain_triggers import ChainTriggerService
from adjudge.services.chains import ChainService
from adjudge.services.clarifications import ClarificationService
from adjudge.services.contest_access import ContestAccess
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
from adjudge.services.contest_submit import ContestSubmitCheck
from adjudge.services.contest_tokens import ContestTokenService
from adjudge.services.contests import ContestService
from adjudge.services.domjudge import DomjudgeService
from adjudge.services.domjudge_problems import DomjudgeProblemService
from adjudge.services.evaluation_problems import EvaluationProblems
from adjudge.services.evaluation_records import EvaluationRecordReader
from adjudge.services.evaluations import EvaluationService
from adjudge.services.event_feed import EventFeed
from adjudge.services.executions import ExecutionService
from adjudge.services.health import Check
from adjudge.services.image_info import ImageInfoCache
from adjudge.services.judge0 import Judge0Service
from adjudge.services.judging_control import JudgingControlService
from adjudge.services.judging_pause import JudgingPauseService
from adjudge.services.jury_dashboard import JuryDashboardService
from adjudge.services.jury_submissions import JurySubmissionService
from adjudge.services.languages import LanguageService
from adjudge.services.login import LoginService
from adjudge.services.oidc import OidcProvider
from adjudge.services.ops import OpsService
from adjudge.services.participants import ParticipantService
from adjudge.services.passwords import PasswordHashing
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
from adjudge.services.scoreboard_feed import ScoreboardFeed
from adjudge.services.scoreboard_replay import ReplayCache
from adjudge.services.secrets import SecretService
from adjudge.services.submission_events import SubmissionEventService
from adjudge.services.submission_sources import SubmissionSourceService
from adjudge.services.submissions import SubmissionService
from adjudge.services.submit import SubmissionRulesCache, SubmitService
from adjudge.services.system_metrics import SystemMetrics
from adjudge.services.team_import import TeamImportService
from adjudge.services.team_photos import TeamPhotoService
from adjudge.services.user_events import UserEventService
from adjudge.services.users import UserService
from adjudge.services.viewer import ContestOnlyMode, CredentialCache
from adjudge.services.visible_submissions import VisibleSubmissionService
from adjudge.services.webhooks import WebhookService
from adjudge.settings import Settings
from adjudge.store import Database
from adjudge.store.jobs.commands import JobCommands
from adjudge.store.judging.submit_batch import SubmitBatcher


def compose_services(
    settings: Settings,
    database: Database,
    *,
    jobs: JobCommands,
    engine: ChainEngine,
    blobs: BlobStore,
    cache: TwoTierCache,
    registry: Registry,
    languages: Languages,
    buckets: TokenBuckets,
    admission: AdmissionController,
    credentials: CredentialCache,
    passwords: PasswordHashing,
    feed: EventFeed,
    scoreboard_feed: ScoreboardFeed,
    feed_watcher: FeedWatcher,
    connections: SseConnections,
    checks: Mapping[str, Check],
    system_metrics: SystemMetrics,
    oidc: OidcProvider | None = None,
    new_id: IdFactory = new_id,
) -> Services:
    accounts, executions = settings.accounts, settings.executions
    rules = SubmissionRulesCache(database)
    problem_stats = ProblemStatsService(database, cache)
    problems = ProblemService(
        database, blobs, cache, languages, problem_stats, schema.encode_problem_page, schema.encode_problem
    )
    submissions = SubmissionService(database, jobs, cache, rules, feed)
    submission_events = SubmissionEventService(database, feed, submissions)
    rejudges = RejudgeService(database, jobs, cache, admission, rules, new_id)
    reauthentication = ReauthenticationService(database, accounts, buckets, passwords)
    chains = ChainService(database, new_id)
    chain_runs = ChainRunService(database, engine, blobs, admission, chains)
    upload_limit_bytes = settings.server.upload_limit_bytes
    problem_imports = ProblemImportService(database, jobs, blobs, upload_limit_bytes, admission, problems, new_id)
    contest_access = ContestAccess(database)
    contest_only = ContestOnlyMode(database, cache_sec=settings.accounts.credential_cache_sec)
    contests = ContestService(database, contest_access, languages, new_id, contest_only)
    clarifications = ClarificationService(database, contest_access, new_id)
    scoreboards = ScoreboardService(database, contest_access, scoreboard_feed, ReplayCache(database, scoreboard_feed))
    awards = AwardService(database, scoreboards)
    execution_service = ExecutionService(database, jobs, languages, executions, settings.judge, admission, feed, new_id)
    ops = OpsService(database, jobs, registry, settings, checks)
    logins = LoginService(database, accounts, buckets, credentials, passwords, new_id, oidc)
    exports = ScoreboardExportService(database, scoreboards, awards)
    images = ImageInfoCache(blobs)
    ccs = CcsService(CcsLoader(database, languages, rules, images), contests, clarifications, awards, exports)
    sources = SubmissionSourceService(database, blobs, languages, submissions)
    submitter = SubmitService(
        database,
        blobs,
        languages,
        admission,
        rules,
        SubmitBatcher(database, jobs, CONTEST_LISTENER),
        FileLimits(settings.server.submission_files, settings.server.submission_bytes),
        ContestSubmitCheck(database),
        new_id,
    )
    lifecycle = ContestLifecycleService(database, contest_access, new_id)
    contest_problems = ContestProblemService(contests, problems)
    team_photos = TeamPhotoService(database, blobs)
    prints = PrintService(database, settings.printing, new_id)
    return Services(
        settings=settings,
        new_id=new_id,
        credentials=credentials,
        admission=admission,
        connections=connections,
        languages=languages,
        checks=checks,
        accounts=AccountService(database, accounts, buckets, credentials, passwords, new_id),
        logins=logins,
        basic_auth=BasicAuthentication(database, logins, credentials),
        users=UserService(database, accounts, credentials, passwords, new_id, mail_base_url(settings)),
        password_resets=make_password_resets(settings, database, buckets, credentials, passwords),
        problems=problems,
        problem_stats=problem_stats,
        revisions=ProblemRevisionService(database, blobs, cache, problems),
        imports=problem_imports,
        language_service=LanguageService(cache, languages, schema.encode_languages, schema.encode_template),
        chains=chains,
        chain_runs=chain_runs,
        chain_triggers=ChainTriggerService(database, chains, new_id),
        run_files=ChainRunFileService(blobs, chain_runs),
        secrets=SecretService(database, settings),
        submissions=submissions,
        sources=sources,
        submitter=submitter,
        executions=execution_service,
        evaluations=EvaluationService(
            database,
            jobs,
            EvaluationRecordReader(languages, executions, EvaluationProblems(database, rules)),
            executions,
            admission,
            new_id,
        ),
        domjudge=DomjudgeService(database, contests, prints, sources, ccs),
        domjudge_problems=DomjudgeProblemService(contests, problem_imports, new_id),
        judge0=Judge0Service(execution_service, languages, executions, ops),
        events=submission_events,
        user_events=UserEventService(database, feed, submission_events),
        rejudges=rejudges,
        webhooks=WebhookService(database, settings.webhooks.most, buckets, new_id),
        ops=ops,
        system_metrics=system_metrics,
        contests=contests,
        reauthentication=reauthentication,
        contest_submissions=ContestSubmissionService(database, contest_access, reauthentication, rejudges),
        visible_submissions=VisibleSubmissionService(database),
        jury_submissions=JurySubmissionService(database, submissions, languages),
        contest_problems=contest_problems,
        own_contests=OwnContestService(database),
        contest_lifecycle=lifecycle,
        ratings=RatingService(database),
        clarifications=clarifications,
        judging_pauses=JudgingPauseService(database, jobs),
        judging_control=JudgingControlService(database, jobs, registry, languages),
        jury_dashboard=JuryDashboardService(database, clarifications),
        contest_registrations=ContestRegistrationService(database, contest_access, new_id),
        contest_participants=ParticipantService(database, contest_access, new_id),
        contest_invitations=ContestInvitationService(database, contest_access, new_id),
        contest_only=contest_only,
        contest_groups=ContestGroupService(database, contest_access, new_id),
        contest_accounts=ContestAccountService(database, contest_access, passwords, credentials, new_id),
        contest_tokens=ContestTokenService(database, new_id),
        team_imports=TeamImportService(database, passwords, accounts.password_min_length, new_id),
        team_photos=team_photos,
        scoreboards=scoreboards,
        scoreboard_exports=exports,
        awards=awards,
        balloons=BalloonService(database, scoreboard_feed),
        prints=prints,
        contest_statistics=ContestStatisticsService(database, scoreboards),
        contest_materials=ContestMaterialService(database, contest_access, blobs, new_id),
        contest_exports=ContestPackageExporter(database, blobs),
        contest_imports=ContestPackageImporter(
            database,
            blobs,
            contests,
            problem_imports,
            jobs,
            passwords,
            accounts.password_min_length,
            upload_limit_bytes,
            new_id,
        ),
        ccs=ccs,
        ccs_changes=CcsChangeService(ccs, submitter, clarifications, lifecycle),
        ccs_files=CcsFileService(ccs, sources, contest_problems, team_photos, images),
        ccs_feed=CcsFeedService(database, contest_access, feed_watcher, new_id),
    )
