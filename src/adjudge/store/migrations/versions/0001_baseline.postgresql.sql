CREATE TABLE audit_log (
    id BIGSERIAL NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    object_kind TEXT NOT NULL,
    object_id TEXT NOT NULL,
    contest_id TEXT,
    reason TEXT,
    details JSONB,
    at BIGINT NOT NULL,
    CONSTRAINT audit_log_pkey PRIMARY KEY (id)
)

CREATE INDEX audit_log_actor_id ON audit_log (actor, id)

CREATE INDEX audit_log_contest_id_id ON audit_log (contest_id, id)

CREATE INDEX audit_log_object_kind_object_id ON audit_log (object_kind, object_id)

CREATE TABLE cache_revisions (
    name TEXT NOT NULL,
    revision BIGINT NOT NULL,
    CONSTRAINT cache_revisions_pkey PRIMARY KEY (name)
)

CREATE INDEX cache_revisions_revision ON cache_revisions (revision)

CREATE TABLE chain_secrets (
    name TEXT NOT NULL,
    ciphertext TEXT NOT NULL,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    updated_by TEXT,
    updated_at BIGINT NOT NULL,
    CONSTRAINT chain_secrets_pkey PRIMARY KEY (name)
)

CREATE TABLE chains (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    enabled BOOLEAN DEFAULT true NOT NULL,
    version BIGINT DEFAULT '1' NOT NULL,
    dag JSONB NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    authority JSONB,
    last_run_number BIGINT DEFAULT '0' NOT NULL,
    CONSTRAINT chains_pkey PRIMARY KEY (id),
    CONSTRAINT chains_name_key UNIQUE (name),
    CONSTRAINT chains_version_positive CHECK (version > 0)
)

CREATE TABLE installation (
    only_row BIGSERIAL NOT NULL,
    id TEXT NOT NULL,
    CONSTRAINT installation_pkey PRIMARY KEY (only_row),
    CONSTRAINT installation_one_row CHECK (only_row = 1)
)

CREATE TABLE judging_pauses (
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT judging_pauses_pkey PRIMARY KEY (scope, subject),
    CONSTRAINT judging_pauses_scope_known CHECK (scope = ANY ('{all,language,problem}')),
    CONSTRAINT judging_pauses_subject_unless_all CHECK ((subject = '') = (scope = 'all'))
)

CREATE TABLE mails (
    id TEXT NOT NULL,
    recipient TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT,
    state TEXT DEFAULT 'pending' NOT NULL,
    error TEXT,
    created_at BIGINT NOT NULL,
    finished_at BIGINT,
    CONSTRAINT mails_pkey PRIMARY KEY (id),
    CONSTRAINT mails_state_known CHECK (state = ANY ('{pending,sent,failed}')),
    CONSTRAINT mails_finished_at_exactly_when CHECK ((finished_at IS NULL) = (state = 'pending'))
)

CREATE INDEX mails_created_at ON mails (created_at)

CREATE TABLE metric_samples (
    source TEXT NOT NULL,
    at BIGINT NOT NULL,
    sample JSONB NOT NULL,
    CONSTRAINT metric_samples_pkey PRIMARY KEY (source, at)
)

CREATE INDEX metric_samples_at ON metric_samples (at)

CREATE TABLE operational_events (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    mailed_at BIGINT,
    CONSTRAINT operational_events_pkey PRIMARY KEY (id),
    CONSTRAINT operational_events_kind_subject_key UNIQUE (kind, subject),
    CONSTRAINT operational_events_kind_known CHECK (kind = ANY ('{ops.worker_lost,ops.dead_letter,ops.chain_failed}'))
)

CREATE INDEX operational_events_created_at ON operational_events (created_at)

CREATE INDEX operational_events_unmailed ON operational_events (created_at) WHERE mailed_at IS NULL

CREATE TABLE organizations (
    id TEXT NOT NULL,
    code TEXT NOT NULL,
    name TEXT NOT NULL,
    formal_name TEXT,
    country TEXT,
    icpc_id TEXT,
    logo_digest TEXT,
    version BIGINT DEFAULT '1' NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT organizations_pkey PRIMARY KEY (id),
    CONSTRAINT organizations_code_key UNIQUE (code),
    CONSTRAINT organizations_code_length CHECK (length(code) BETWEEN 1 AND 36)
)

CREATE TABLE processes (
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    version TEXT NOT NULL,
    slots BIGINT NOT NULL,
    capabilities JSONB NOT NULL,
    health TEXT DEFAULT 'starting' NOT NULL,
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    CONSTRAINT processes_pkey PRIMARY KEY (id)
)

CREATE INDEX processes_lease_until ON processes (lease_until)

CREATE TABLE source_texts (
    digest TEXT NOT NULL,
    body TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT source_texts_pkey PRIMARY KEY (digest)
)

CREATE TABLE system_metrics (
    only_row BIGSERIAL NOT NULL,
    claimed_at BIGINT NOT NULL,
    taken_at BIGINT,
    took_us BIGINT,
    gauges JSONB,
    CONSTRAINT system_metrics_pkey PRIMARY KEY (only_row),
    CONSTRAINT system_metrics_one_row CHECK (only_row = 1)
)

CREATE TABLE users (
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    email TEXT,
    password_hash TEXT,
    role TEXT DEFAULT 'contestant' NOT NULL,
    disabled_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    display_name TEXT,
    must_change_password BOOLEAN DEFAULT false NOT NULL,
    CONSTRAINT users_pkey PRIMARY KEY (id),
    CONSTRAINT users_name_key UNIQUE (name),
    CONSTRAINT users_email_key UNIQUE (email),
    CONSTRAINT users_role_known CHECK (role = ANY ('{admin,setter,judge,contestant,service}'))
)

CREATE TABLE worker_controls (
    worker TEXT NOT NULL,
    mode TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT worker_controls_pkey PRIMARY KEY (worker),
    CONSTRAINT worker_controls_mode_known CHECK (mode = ANY ('{pause,drain}'))
)

CREATE TABLE api_tokens (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    scopes JSONB NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT,
    CONSTRAINT api_tokens_pkey PRIMARY KEY (id),
    CONSTRAINT api_tokens_token_hash_key UNIQUE (token_hash),
    CONSTRAINT api_tokens_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
)

CREATE INDEX api_tokens_user_id ON api_tokens (user_id)

CREATE TABLE chain_runs (
    id TEXT NOT NULL,
    chain_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    chain_version BIGINT NOT NULL,
    idempotency_key TEXT,
    status TEXT DEFAULT 'pending' NOT NULL,
    prior_status TEXT,
    dag JSONB NOT NULL,
    parameters JSONB DEFAULT '{}' NOT NULL,
    trigger_kind TEXT DEFAULT 'manual' NOT NULL,
    actor TEXT,
    reason TEXT,
    trace_id TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT,
    nodes_total BIGINT DEFAULT '0' NOT NULL,
    nodes_open BIGINT DEFAULT '0' NOT NULL,
    nodes_failed BIGINT DEFAULT '0' NOT NULL,
    stop_requested_at BIGINT,
    started_by TEXT,
    parent_run_id TEXT,
    parent_node_id TEXT,
    origin_run_id TEXT,
    slot TEXT,
    authority JSONB,
    CONSTRAINT chain_runs_pkey PRIMARY KEY (id),
    CONSTRAINT chain_runs_status_known CHECK (status = ANY ('{pending,running,stopping,success,failed,stopped}')),
    CONSTRAINT chain_runs_finished_at_exactly_when CHECK ((finished_at IS NOT NULL) = (status = ANY ('{failed,stopped,success}'))),
    CONSTRAINT chain_runs_chain_id_idempotency_key_key UNIQUE (chain_id, idempotency_key),
    CONSTRAINT chain_runs_chain_id_number_key UNIQUE (chain_id, number),
    CONSTRAINT chain_runs_chain_id_fkey FOREIGN KEY(chain_id) REFERENCES chains (id)
)

CREATE INDEX chain_runs_chain_id_id ON chain_runs (chain_id, id)

CREATE INDEX chain_runs_finished ON chain_runs (finished_at) WHERE finished_at IS NOT NULL

CREATE INDEX chain_runs_open ON chain_runs (id) WHERE finished_at IS NULL

CREATE INDEX chain_runs_parent ON chain_runs (parent_run_id) WHERE parent_run_id IS NOT NULL

CREATE INDEX chain_runs_slots ON chain_runs (chain_id, slot, id) WHERE slot IS NOT NULL

CREATE INDEX chain_runs_started_by_id ON chain_runs (started_by, id)

CREATE INDEX chain_runs_stopping ON chain_runs (stop_requested_at) WHERE status = 'stopping'

CREATE TABLE chain_triggers (
    id TEXT NOT NULL,
    chain_id TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    spec JSONB NOT NULL,
    event TEXT,
    secret_hash TEXT,
    enabled BOOLEAN DEFAULT true NOT NULL,
    next_at BIGINT,
    last_tick TEXT,
    last_error TEXT,
    version BIGINT DEFAULT '1' NOT NULL,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    authority JSONB,
    CONSTRAINT chain_triggers_pkey PRIMARY KEY (id),
    CONSTRAINT chain_triggers_kind_known CHECK (kind = ANY ('{cron,delay,event,webhook,chain}')),
    CONSTRAINT chain_triggers_chain_id_name_key UNIQUE (chain_id, name),
    CONSTRAINT chain_triggers_chain_id_fkey FOREIGN KEY(chain_id) REFERENCES chains (id) ON DELETE CASCADE
)

CREATE INDEX chain_triggers_due ON chain_triggers (next_at) WHERE enabled

CREATE INDEX chain_triggers_event ON chain_triggers (event) WHERE event IS NOT NULL

CREATE TABLE chain_versions (
    chain_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    dag JSONB NOT NULL,
    actor TEXT,
    created_at BIGINT NOT NULL,
    CONSTRAINT chain_versions_pkey PRIMARY KEY (chain_id, version),
    CONSTRAINT chain_versions_chain_id_fkey FOREIGN KEY(chain_id) REFERENCES chains (id) ON DELETE CASCADE
)

CREATE TABLE contests (
    id TEXT NOT NULL,
    slug TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT DEFAULT '' NOT NULL,
    state TEXT DEFAULT 'draft' NOT NULL,
    format TEXT DEFAULT 'icpc' NOT NULL,
    format_cfg JSONB DEFAULT '{}' NOT NULL,
    starts_at BIGINT,
    countdown_pause_us BIGINT,
    duration_us BIGINT NOT NULL,
    freeze_ct_us BIGINT,
    frozen_at BIGINT,
    thaw_at BIGINT,
    window_us BIGINT,
    finalized_at BIGINT,
    end_of_updates_at BIGINT,
    visibility TEXT DEFAULT 'public' NOT NULL,
    scoreboard_visibility TEXT DEFAULT 'public' NOT NULL,
    feedback TEXT DEFAULT 'full' NOT NULL,
    problems_public BOOLEAN DEFAULT false NOT NULL,
    submissions_public BOOLEAN DEFAULT false NOT NULL,
    materials_public BOOLEAN DEFAULT false NOT NULL,
    contest_only BOOLEAN DEFAULT false NOT NULL,
    contest_only_from BIGINT,
    contest_only_until BIGINT,
    address_ranges JSONB,
    registration TEXT DEFAULT 'open' NOT NULL,
    registration_code_hash TEXT,
    registration_opens_at BIGINT,
    registration_closes_at BIGINT,
    allows_individuals BOOLEAN DEFAULT true NOT NULL,
    allows_teams BOOLEAN DEFAULT true NOT NULL,
    max_team_members BIGINT DEFAULT '3' NOT NULL,
    allows_virtual BOOLEAN DEFAULT true NOT NULL,
    allows_practice BOOLEAN DEFAULT true NOT NULL,
    allowed_languages JSONB,
    submissions_per_minute BIGINT,
    submissions_per_problem BIGINT,
    verify_required BOOLEAN DEFAULT false NOT NULL,
    late_policy TEXT DEFAULT 'refuse' NOT NULL,
    clarification_categories JSONB DEFAULT '[]' NOT NULL,
    printing_enabled BOOLEAN DEFAULT false NOT NULL,
    balloons_enabled BOOLEAN DEFAULT false NOT NULL,
    freeze_balloon_minimum BIGINT,
    awards_cfg JSONB DEFAULT '{}' NOT NULL,
    bronze_extra BIGINT DEFAULT '0' NOT NULL,
    rated BOOLEAN DEFAULT false NOT NULL,
    version BIGINT DEFAULT '1' NOT NULL,
    actor TEXT,
    reason TEXT,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT contests_pkey PRIMARY KEY (id),
    CONSTRAINT contests_slug_key UNIQUE (slug),
    CONSTRAINT contests_state_known CHECK (state = ANY ('{draft,published,canceled,finalized}')),
    CONSTRAINT contests_format_known CHECK (format = ANY ('{icpc,ioi,best,last,atcoder,homework}')),
    CONSTRAINT contests_visibility_known CHECK (visibility = ANY ('{public,private}')),
    CONSTRAINT contests_scoreboard_visibility_known CHECK (scoreboard_visibility = ANY ('{public,participants,hidden}')),
    CONSTRAINT contests_feedback_known CHECK (feedback = ANY ('{full,partial,none}')),
    CONSTRAINT contests_registration_known CHECK (registration = ANY ('{open,code,invitation,list}')),
    CONSTRAINT contests_late_policy_known CHECK (late_policy = ANY ('{refuse,unofficial}')),
    CONSTRAINT contests_slug_length CHECK (length(slug) BETWEEN 1 AND 36),
    CONSTRAINT contests_duration_positive CHECK (duration_us > 0),
    CONSTRAINT contests_freeze_within CHECK (freeze_ct_us IS NULL OR (freeze_ct_us >= 0 AND freeze_ct_us <= duration_us)),
    CONSTRAINT contests_window_excludes_freeze CHECK (window_us IS NULL OR (window_us > 0 AND freeze_ct_us IS NULL)),
    CONSTRAINT contests_paused_without_start CHECK (starts_at IS NULL OR countdown_pause_us IS NULL),
    CONSTRAINT contests_published_with_start CHECK (state IN ('draft', 'canceled') OR starts_at IS NOT NULL OR countdown_pause_us IS NOT NULL),
    CONSTRAINT contests_finalized_at_exactly_when CHECK ((finalized_at IS NOT NULL) = (state = 'finalized')),
    CONSTRAINT contests_end_of_updates_finalized CHECK (end_of_updates_at IS NULL OR state = 'finalized'),
    CONSTRAINT contests_code_by_mode CHECK (registration_code_hash IS NULL OR registration = 'code'),
    CONSTRAINT contests_counts CHECK (max_team_members > 0 AND bronze_extra >= 0),
    CONSTRAINT contests_submissions_per_minute_positive CHECK (submissions_per_minute > 0),
    CONSTRAINT contests_submissions_per_problem_positive CHECK (submissions_per_problem > 0),
    CONSTRAINT contests_created_by_fkey FOREIGN KEY(created_by) REFERENCES users (id)
)

CREATE UNIQUE INDEX contests_contest_only_key ON contests (contest_only) WHERE contest_only

CREATE INDEX contests_open ON contests (id) WHERE end_of_updates_at IS NULL AND (state <> 'finalized' OR (thaw_at IS NULL AND (freeze_ct_us IS NOT NULL OR frozen_at IS NOT NULL)))

CREATE INDEX contests_starts_at ON contests (starts_at)

CREATE TABLE evaluations (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT,
    total BIGINT DEFAULT '0' NOT NULL,
    finished BIGINT DEFAULT '0' NOT NULL,
    sequence BIGINT DEFAULT '0' NOT NULL,
    kept_bytes BIGINT DEFAULT '0' NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    CONSTRAINT evaluations_pkey PRIMARY KEY (id),
    CONSTRAINT evaluations_user_id_name_key UNIQUE (user_id, name),
    CONSTRAINT evaluations_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
)

CREATE INDEX evaluations_expires_at ON evaluations (expires_at)

CREATE INDEX evaluations_user_id_id ON evaluations (user_id, id)

CREATE TABLE idempotency_keys (
    user_id TEXT NOT NULL,
    key TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    response_status BIGINT NOT NULL,
    response JSONB NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (user_id, key),
    CONSTRAINT idempotency_keys_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
)

CREATE INDEX idempotency_keys_expires_at ON idempotency_keys (expires_at)

CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT identities_pkey PRIMARY KEY (issuer, subject),
    CONSTRAINT identities_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
)

CREATE INDEX identities_user_id ON identities (user_id)

CREATE TABLE invitations (
    id TEXT NOT NULL,
    code_hash TEXT NOT NULL,
    role TEXT DEFAULT 'contestant' NOT NULL,
    note TEXT,
    max_uses BIGINT DEFAULT '1' NOT NULL,
    uses BIGINT DEFAULT '0' NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    CONSTRAINT invitations_pkey PRIMARY KEY (id),
    CONSTRAINT invitations_code_hash_key UNIQUE (code_hash),
    CONSTRAINT invitations_role_known CHECK (role = ANY ('{admin,setter,judge,contestant,service}')),
    CONSTRAINT invitations_uses_bounded CHECK (uses >= 0 AND uses <= max_uses),
    CONSTRAINT invitations_created_by_fkey FOREIGN KEY(created_by) REFERENCES users (id)
)

CREATE TABLE password_resets (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT,
    CONSTRAINT password_resets_pkey PRIMARY KEY (id),
    CONSTRAINT password_resets_token_hash_key UNIQUE (token_hash),
    CONSTRAINT password_resets_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
)

CREATE INDEX password_resets_expires_at ON password_resets (expires_at)

CREATE INDEX password_resets_user_id ON password_resets (user_id)

CREATE TABLE problems (
    id TEXT NOT NULL,
    slug TEXT NOT NULL,
    title TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    published_revision_id TEXT,
    tags JSONB NOT NULL,
    difficulty DOUBLE PRECISION,
    version BIGINT DEFAULT '1' NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT problems_pkey PRIMARY KEY (id),
    CONSTRAINT problems_slug_key UNIQUE (slug),
    CONSTRAINT problems_owner_id_fkey FOREIGN KEY(owner_id) REFERENCES users (id)
)

CREATE INDEX problems_owner_id_id ON problems (owner_id, id)

CREATE TABLE rejudge_batches (
    id TEXT NOT NULL,
    number BIGINT GENERATED ALWAYS AS IDENTITY,
    created_by TEXT NOT NULL,
    filter JSONB NOT NULL,
    policy TEXT DEFAULT 'latest' NOT NULL,
    state TEXT DEFAULT 'running' NOT NULL,
    reason TEXT,
    total BIGINT DEFAULT '0' NOT NULL,
    version BIGINT DEFAULT '1' NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    applied_at BIGINT,
    ended BIGINT DEFAULT '0' NOT NULL,
    revision TEXT DEFAULT 'pinned' NOT NULL,
    actor TEXT,
    CONSTRAINT rejudge_batches_pkey PRIMARY KEY (id),
    CONSTRAINT rejudge_batches_state_known CHECK (state = ANY ('{running,ready,applied,discarded,canceled}')),
    CONSTRAINT rejudge_batches_policy_known CHECK (policy = ANY ('{latest,best,first_accepted_stays}')),
    CONSTRAINT rejudge_batches_number_key UNIQUE (number),
    CONSTRAINT rejudge_batches_created_by_fkey FOREIGN KEY(created_by) REFERENCES users (id)
)

CREATE TABLE sessions (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    address TEXT,
    user_agent TEXT,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    idle_until BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT,
    CONSTRAINT sessions_pkey PRIMARY KEY (id),
    CONSTRAINT sessions_token_hash_key UNIQUE (token_hash),
    CONSTRAINT sessions_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
)

CREATE INDEX sessions_expires_at ON sessions (expires_at)

CREATE INDEX sessions_user_id ON sessions (user_id)

CREATE TABLE teams (
    id TEXT NOT NULL,
    code TEXT NOT NULL,
    name TEXT NOT NULL,
    icpc_id TEXT,
    organization_id TEXT,
    photo_digest TEXT,
    join_code_hash TEXT,
    version BIGINT DEFAULT '1' NOT NULL,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT teams_pkey PRIMARY KEY (id),
    CONSTRAINT teams_code_key UNIQUE (code),
    CONSTRAINT teams_code_length CHECK (length(code) BETWEEN 1 AND 36),
    CONSTRAINT teams_organization_id_fkey FOREIGN KEY(organization_id) REFERENCES organizations (id),
    CONSTRAINT teams_created_by_fkey FOREIGN KEY(created_by) REFERENCES users (id)
)

CREATE INDEX teams_created_by ON teams (created_by)

CREATE INDEX teams_organization_id ON teams (organization_id)

CREATE TABLE webhooks (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    events JSONB NOT NULL,
    is_active BOOLEAN DEFAULT true NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    failures BIGINT DEFAULT '0' NOT NULL,
    disabled_at BIGINT,
    disabled_reason TEXT,
    CONSTRAINT webhooks_pkey PRIMARY KEY (id),
    CONSTRAINT webhooks_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
)

CREATE INDEX webhooks_user_id_id ON webhooks (user_id, id)

CREATE TABLE awards (
    contest_id TEXT NOT NULL,
    code TEXT NOT NULL,
    citation TEXT NOT NULL,
    participants JSONB DEFAULT '[]' NOT NULL,
    managed BOOLEAN DEFAULT true NOT NULL,
    ordinal BIGINT DEFAULT '0' NOT NULL,
    version BIGINT DEFAULT '1' NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT awards_pkey PRIMARY KEY (contest_id, code),
    CONSTRAINT awards_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE
)

CREATE TABLE canned_answers (
    id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    ordinal BIGINT DEFAULT '0' NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    CONSTRAINT canned_answers_pkey PRIMARY KEY (id),
    CONSTRAINT canned_answers_contest_id_title_key UNIQUE (contest_id, title),
    CONSTRAINT canned_answers_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE
)

CREATE TABLE chain_checkpoints (
    run_id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    attempt_id BIGINT NOT NULL,
    checkpoint JSONB NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT chain_checkpoints_pkey PRIMARY KEY (run_id, node_id),
    CONSTRAINT chain_checkpoints_run_id_fkey FOREIGN KEY(run_id) REFERENCES chain_runs (id) ON DELETE CASCADE
)

CREATE TABLE chain_node_logs (
    id BIGSERIAL NOT NULL,
    run_id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    text TEXT NOT NULL,
    at BIGINT NOT NULL,
    CONSTRAINT chain_node_logs_pkey PRIMARY KEY (id),
    CONSTRAINT chain_node_logs_run_id_fkey FOREIGN KEY(run_id) REFERENCES chain_runs (id) ON DELETE CASCADE
)

CREATE INDEX chain_node_logs_run_id_node_id_id ON chain_node_logs (run_id, node_id, id)

CREATE TABLE chain_nodes (
    run_id TEXT NOT NULL,
    node_id TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT DEFAULT 'pending' NOT NULL,
    prior_status TEXT,
    attempt BIGINT DEFAULT '0' NOT NULL,
    last_error TEXT,
    artifact JSONB,
    job_id TEXT,
    actor TEXT,
    reason TEXT,
    updated_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    ordinal BIGINT DEFAULT '0' NOT NULL,
    priority BIGINT DEFAULT '2' NOT NULL,
    waiting_on BIGINT DEFAULT '0' NOT NULL,
    deps_success BIGINT DEFAULT '0' NOT NULL,
    deps_failed BIGINT DEFAULT '0' NOT NULL,
    deps_skipped BIGINT DEFAULT '0' NOT NULL,
    parent_id TEXT,
    item JSONB,
    artifact_digest TEXT,
    artifact_bytes BIGINT DEFAULT '0' NOT NULL,
    slot TEXT,
    wait_on TEXT,
    wait_key TEXT,
    wait_until BIGINT,
    concurrency_pool TEXT,
    CONSTRAINT chain_nodes_pkey PRIMARY KEY (run_id, node_id),
    CONSTRAINT chain_nodes_status_known CHECK (status = ANY ('{pending,running,retrying,success,failed,stopped,skipped}')),
    CONSTRAINT chain_nodes_run_id_fkey FOREIGN KEY(run_id) REFERENCES chain_runs (id) ON DELETE CASCADE
)

CREATE INDEX chain_nodes_instances ON chain_nodes (run_id, parent_id, ordinal) WHERE parent_id IS NOT NULL

CREATE INDEX chain_nodes_pools ON chain_nodes (concurrency_pool, slot, priority, run_id, ordinal, node_id) WHERE concurrency_pool IS NOT NULL AND slot IS NOT NULL

CREATE INDEX chain_nodes_slots ON chain_nodes (run_id, slot, priority, ordinal) WHERE slot IS NOT NULL

CREATE INDEX chain_nodes_wait_until ON chain_nodes (wait_until) WHERE wait_until IS NOT NULL

CREATE INDEX chain_nodes_waits ON chain_nodes (wait_on, wait_key) WHERE wait_on IS NOT NULL

CREATE TABLE chain_status_log (
    id BIGSERIAL NOT NULL,
    run_id TEXT NOT NULL,
    node_id TEXT,
    from_status TEXT NOT NULL,
    to_status TEXT NOT NULL,
    attempt BIGINT,
    actor TEXT,
    reason TEXT,
    at BIGINT NOT NULL,
    CONSTRAINT chain_status_log_pkey PRIMARY KEY (id)
)

CREATE INDEX chain_status_log_run_id ON chain_status_log (run_id)

CREATE TABLE chain_trigger_ticks (
    trigger_id TEXT NOT NULL,
    tick TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    payload JSONB DEFAULT '{}' NOT NULL,
    state TEXT DEFAULT 'pending' NOT NULL,
    run_id TEXT,
    error TEXT,
    created_at BIGINT NOT NULL,
    settled_at BIGINT,
    CONSTRAINT chain_trigger_ticks_pkey PRIMARY KEY (trigger_id, tick),
    CONSTRAINT chain_trigger_ticks_state_known CHECK (state = ANY ('{pending,started,failed}')),
    CONSTRAINT chain_trigger_ticks_trigger_id_fkey FOREIGN KEY(trigger_id) REFERENCES chain_triggers (id) ON DELETE CASCADE
)

CREATE INDEX chain_trigger_ticks_pending ON chain_trigger_ticks (due_at) WHERE state = 'pending'

CREATE TABLE contest_accounts (
    user_id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    address_ranges JSONB,
    temporary BOOLEAN DEFAULT true NOT NULL,
    expires_at BIGINT,
    disabled_at BIGINT,
    created_at BIGINT NOT NULL,
    CONSTRAINT contest_accounts_pkey PRIMARY KEY (user_id, contest_id),
    CONSTRAINT contest_accounts_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT contest_accounts_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE
)

CREATE INDEX contest_accounts_contest_id ON contest_accounts (contest_id)

CREATE TABLE contest_counters (
    contest_id TEXT NOT NULL,
    next_number BIGINT DEFAULT '1' NOT NULL,
    last_received_at BIGINT NOT NULL,
    next_clarification BIGINT DEFAULT '1' NOT NULL,
    next_print BIGINT DEFAULT '1' NOT NULL,
    CONSTRAINT contest_counters_pkey PRIMARY KEY (contest_id),
    CONSTRAINT contest_counters_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE
)

CREATE TABLE contest_feeds (
    id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    view TEXT NOT NULL,
    last_sequence BIGINT DEFAULT '0' NOT NULL,
    last_number BIGINT DEFAULT '0' NOT NULL,
    status_xid BIGINT DEFAULT '0' NOT NULL,
    status_id BIGINT DEFAULT '0' NOT NULL,
    board_xid BIGINT DEFAULT '0' NOT NULL,
    board_id BIGINT DEFAULT '0' NOT NULL,
    phase_marker TEXT DEFAULT '' NOT NULL,
    data_marker TEXT DEFAULT '' NOT NULL,
    awards_due BOOLEAN DEFAULT false NOT NULL,
    data_at BIGINT DEFAULT '0' NOT NULL,
    awards_at BIGINT DEFAULT '0' NOT NULL,
    logs_at BIGINT DEFAULT '0' NOT NULL,
    requests BIGINT DEFAULT '0' NOT NULL,
    served BIGINT DEFAULT '0' NOT NULL,
    read_at BIGINT NOT NULL,
    is_final BOOLEAN DEFAULT false NOT NULL,
    version BIGINT DEFAULT '1' NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT contest_feeds_pkey PRIMARY KEY (id),
    CONSTRAINT contest_feeds_contest_id_view_key UNIQUE (contest_id, view),
    CONSTRAINT contest_feeds_view_known CHECK (view = ANY ('{jury,participant,visitor}')),
    CONSTRAINT contest_feeds_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE
)

CREATE INDEX contest_feeds_read_at ON contest_feeds (read_at)

CREATE TABLE contest_groups (
    id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    code TEXT NOT NULL,
    name TEXT NOT NULL,
    icpc_id TEXT,
    ranked BOOLEAN DEFAULT true NOT NULL,
    hidden BOOLEAN DEFAULT false NOT NULL,
    ordinal BIGINT DEFAULT '0' NOT NULL,
    CONSTRAINT contest_groups_pkey PRIMARY KEY (id),
    CONSTRAINT contest_groups_contest_id_code_key UNIQUE (contest_id, code),
    CONSTRAINT contest_groups_code_length CHECK (length(code) BETWEEN 1 AND 36),
    CONSTRAINT contest_groups_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE
)

CREATE TABLE contest_invitations (
    id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    code_hash TEXT NOT NULL,
    kind TEXT DEFAULT 'official' NOT NULL,
    user_id TEXT,
    note TEXT,
    max_uses BIGINT DEFAULT '1' NOT NULL,
    uses BIGINT DEFAULT '0' NOT NULL,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    CONSTRAINT contest_invitations_pkey PRIMARY KEY (id),
    CONSTRAINT contest_invitations_code_hash_key UNIQUE (code_hash),
    CONSTRAINT contest_invitations_kind_known CHECK (kind = ANY ('{official,unofficial,test,virtual,practice}')),
    CONSTRAINT contest_invitations_uses_bounded CHECK (uses >= 0 AND uses <= max_uses),
    CONSTRAINT contest_invitations_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT contest_invitations_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT contest_invitations_created_by_fkey FOREIGN KEY(created_by) REFERENCES users (id)
)

CREATE INDEX contest_invitations_contest_id ON contest_invitations (contest_id)

CREATE TABLE contest_log (
    id BIGSERIAL NOT NULL,
    contest_id TEXT NOT NULL,
    transition TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    announced_at BIGINT NOT NULL,
    xid BIGINT DEFAULT CAST(CAST(pg_current_xact_id() AS text) AS bigint) NOT NULL,
    CONSTRAINT contest_log_pkey PRIMARY KEY (id),
    CONSTRAINT contest_log_contest_id_transition_key UNIQUE (contest_id, transition),
    CONSTRAINT contest_log_transition_known CHECK (transition = ANY ('{start,freeze,end,thaw,finalize,end_of_updates}')),
    CONSTRAINT contest_log_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE
)

CREATE TABLE contest_materials (
    id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    visible TEXT NOT NULL,
    digest TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT contest_materials_pkey PRIMARY KEY (id),
    CONSTRAINT contest_materials_contest_id_name_key UNIQUE (contest_id, name),
    CONSTRAINT contest_materials_visible_known CHECK (visible = ANY ('{always,start,thaw}')),
    CONSTRAINT contest_materials_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT contest_materials_created_by_fkey FOREIGN KEY(created_by) REFERENCES users (id)
)

CREATE TABLE contest_read_marks (
    contest_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    clarification_number BIGINT DEFAULT '0' NOT NULL,
    verdicts_until BIGINT NOT NULL,
    CONSTRAINT contest_read_marks_pkey PRIMARY KEY (contest_id, user_id),
    CONSTRAINT contest_read_marks_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT contest_read_marks_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
)

CREATE INDEX contest_read_marks_user_id ON contest_read_marks (user_id)

CREATE TABLE contest_roles (
    contest_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    role TEXT NOT NULL,
    granted_by TEXT,
    created_at BIGINT NOT NULL,
    CONSTRAINT contest_roles_pkey PRIMARY KEY (contest_id, user_id, role),
    CONSTRAINT contest_roles_role_known CHECK (role = ANY ('{organiser,judge,balloon,print,api_reader}')),
    CONSTRAINT contest_roles_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT contest_roles_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT contest_roles_granted_by_fkey FOREIGN KEY(granted_by) REFERENCES users (id)
)

CREATE INDEX contest_roles_user_id ON contest_roles (user_id)

CREATE TABLE contest_state_log (
    id BIGSERIAL NOT NULL,
    contest_id TEXT NOT NULL,
    from_state TEXT NOT NULL,
    to_state TEXT NOT NULL,
    version BIGINT NOT NULL,
    actor TEXT,
    reason TEXT,
    at BIGINT NOT NULL,
    CONSTRAINT contest_state_log_pkey PRIMARY KEY (id)
)

CREATE INDEX contest_state_log_contest_id ON contest_state_log (contest_id)

CREATE TABLE participants (
    id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    code TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT DEFAULT 'official' NOT NULL,
    team_id TEXT,
    user_id TEXT,
    run_no BIGINT DEFAULT '0' NOT NULL,
    organization_id TEXT,
    label TEXT,
    location TEXT,
    hidden BOOLEAN DEFAULT false NOT NULL,
    disqualified_at BIGINT,
    started_at BIGINT,
    delay_us BIGINT DEFAULT '0' NOT NULL,
    extra_us BIGINT DEFAULT '0' NOT NULL,
    penalty_adjust_sec BIGINT DEFAULT '0' NOT NULL,
    version BIGINT DEFAULT '1' NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT participants_pkey PRIMARY KEY (id),
    CONSTRAINT participants_contest_id_code_key UNIQUE (contest_id, code),
    CONSTRAINT participants_contest_id_team_id_run_no_key UNIQUE (contest_id, team_id, run_no),
    CONSTRAINT participants_contest_id_user_id_run_no_key UNIQUE (contest_id, user_id, run_no),
    CONSTRAINT participants_kind_known CHECK (kind = ANY ('{official,unofficial,test,virtual,practice}')),
    CONSTRAINT participants_team_or_user CHECK ((team_id IS NULL) <> (user_id IS NULL)),
    CONSTRAINT participants_code_length CHECK (length(code) BETWEEN 1 AND 36),
    CONSTRAINT participants_times_not_negative CHECK (delay_us >= 0 AND extra_us >= 0 AND run_no >= 0),
    CONSTRAINT participants_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT participants_team_id_fkey FOREIGN KEY(team_id) REFERENCES teams (id),
    CONSTRAINT participants_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id),
    CONSTRAINT participants_organization_id_fkey FOREIGN KEY(organization_id) REFERENCES organizations (id)
)

CREATE INDEX participants_contest_id_id ON participants (contest_id, id)

CREATE INDEX participants_team_id ON participants (team_id)

CREATE INDEX participants_user_id ON participants (user_id)

CREATE TABLE problem_revisions (
    id TEXT NOT NULL,
    problem_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    state TEXT DEFAULT 'draft' NOT NULL,
    format TEXT NOT NULL,
    manifest_digest TEXT NOT NULL,
    definition JSONB NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    published_at BIGINT,
    CONSTRAINT problem_revisions_pkey PRIMARY KEY (id),
    CONSTRAINT problem_revisions_problem_id_number_key UNIQUE (problem_id, number),
    CONSTRAINT problem_revisions_state_known CHECK (state = ANY ('{draft,published,withdrawn}')),
    CONSTRAINT problem_revisions_number_positive CHECK (number > 0),
    CONSTRAINT problem_revisions_problem_id_fkey FOREIGN KEY(problem_id) REFERENCES problems (id),
    CONSTRAINT problem_revisions_created_by_fkey FOREIGN KEY(created_by) REFERENCES users (id)
)

CREATE TABLE problem_tags (
    problem_id TEXT NOT NULL,
    tag TEXT COLLATE "C" NOT NULL,
    CONSTRAINT problem_tags_pkey PRIMARY KEY (problem_id, tag),
    CONSTRAINT problem_tags_problem_id_fkey FOREIGN KEY(problem_id) REFERENCES problems (id) ON DELETE CASCADE
)

CREATE INDEX problem_tags_tag_problem_id ON problem_tags (tag, problem_id)

CREATE TABLE problem_words (
    problem_id TEXT NOT NULL,
    word TEXT COLLATE "C" NOT NULL,
    CONSTRAINT problem_words_pkey PRIMARY KEY (problem_id, word),
    CONSTRAINT problem_words_problem_id_fkey FOREIGN KEY(problem_id) REFERENCES problems (id) ON DELETE CASCADE
)

CREATE INDEX problem_words_word_problem_id ON problem_words (word, problem_id)

CREATE TABLE ratings (
    contest_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    rank BIGINT NOT NULL,
    performance_milli BIGINT NOT NULL,
    before_rating_milli BIGINT NOT NULL,
    before_deviation_milli BIGINT NOT NULL,
    rating_milli BIGINT NOT NULL,
    deviation_milli BIGINT NOT NULL,
    rated_at BIGINT NOT NULL,
    CONSTRAINT ratings_pkey PRIMARY KEY (contest_id, user_id),
    CONSTRAINT ratings_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT ratings_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
)

CREATE INDEX ratings_user_id_rated_at ON ratings (user_id, rated_at)

CREATE TABLE removed_intervals (
    id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    from_at BIGINT NOT NULL,
    to_at BIGINT,
    undone_at BIGINT,
    reason TEXT,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    CONSTRAINT removed_intervals_pkey PRIMARY KEY (id),
    CONSTRAINT removed_intervals_ends_after_start CHECK (to_at IS NULL OR from_at < to_at),
    CONSTRAINT removed_intervals_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT removed_intervals_created_by_fkey FOREIGN KEY(created_by) REFERENCES users (id)
)

CREATE INDEX removed_intervals_contest_id_from_at ON removed_intervals (contest_id, from_at)

CREATE UNIQUE INDEX removed_intervals_contest_id_key ON removed_intervals (contest_id) WHERE to_at IS NULL AND undone_at IS NULL

CREATE TABLE scoreboard_log (
    id BIGSERIAL NOT NULL,
    xid BIGINT DEFAULT CAST(CAST(pg_current_xact_id() AS text) AS bigint) NOT NULL,
    contest_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    view TEXT,
    participant_id TEXT,
    version BIGINT DEFAULT '0' NOT NULL,
    payload TEXT,
    at BIGINT NOT NULL,
    CONSTRAINT scoreboard_log_pkey PRIMARY KEY (id),
    CONSTRAINT scoreboard_log_kind_known CHECK (kind = ANY ('{cells,participant,submission,reset}')),
    CONSTRAINT scoreboard_log_view_known CHECK (view = ANY ('{jury,public}')),
    CONSTRAINT scoreboard_log_participant_exactly_when CHECK ((kind = 'reset') = (participant_id IS NULL)),
    CONSTRAINT scoreboard_log_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE
)

CREATE INDEX scoreboard_log_at ON scoreboard_log (at)

CREATE INDEX scoreboard_log_contest_id_xid_id ON scoreboard_log (contest_id, xid, id)

CREATE INDEX scoreboard_log_xid_id ON scoreboard_log (xid, id)

CREATE TABLE team_members (
    team_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    is_captain BOOLEAN DEFAULT false NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT team_members_pkey PRIMARY KEY (team_id, user_id),
    CONSTRAINT team_members_team_id_fkey FOREIGN KEY(team_id) REFERENCES teams (id) ON DELETE CASCADE,
    CONSTRAINT team_members_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
)

CREATE INDEX team_members_user_id ON team_members (user_id)

CREATE TABLE balloons (
    participant_id TEXT NOT NULL,
    problem_id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    delivered_at BIGINT,
    delivered_by TEXT,
    withdrawn_at BIGINT,
    CONSTRAINT balloons_pkey PRIMARY KEY (participant_id, problem_id),
    CONSTRAINT balloons_delivered_by_exactly_when CHECK ((delivered_at IS NULL) = (delivered_by IS NULL)),
    CONSTRAINT balloons_withdrawn_only_if_delivered CHECK (withdrawn_at IS NULL OR delivered_at IS NOT NULL),
    CONSTRAINT balloons_participant_id_fkey FOREIGN KEY(participant_id) REFERENCES participants (id) ON DELETE CASCADE,
    CONSTRAINT balloons_problem_id_fkey FOREIGN KEY(problem_id) REFERENCES problems (id),
    CONSTRAINT balloons_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT balloons_delivered_by_fkey FOREIGN KEY(delivered_by) REFERENCES users (id)
)

CREATE INDEX balloons_contest_id_number ON balloons (contest_id, number)

CREATE TABLE clarifications (
    id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    from_participant_id TEXT,
    audience TEXT NOT NULL,
    to_participant_id TEXT,
    reply_to_id TEXT,
    problem_id TEXT,
    category TEXT,
    body TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    claimed_by TEXT,
    answered_at BIGINT,
    version BIGINT DEFAULT '1' NOT NULL,
    CONSTRAINT clarifications_pkey PRIMARY KEY (id),
    CONSTRAINT clarifications_contest_id_number_key UNIQUE (contest_id, number),
    CONSTRAINT clarifications_audience_known CHECK (audience = ANY ('{jury,participant,groups,all}')),
    CONSTRAINT clarifications_to_participant_exactly_when CHECK ((audience = 'participant') = (to_participant_id IS NOT NULL)),
    CONSTRAINT clarifications_questions_to_jury CHECK (from_participant_id IS NULL OR audience = 'jury'),
    CONSTRAINT clarifications_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT clarifications_from_participant_id_fkey FOREIGN KEY(from_participant_id) REFERENCES participants (id) ON DELETE CASCADE,
    CONSTRAINT clarifications_to_participant_id_fkey FOREIGN KEY(to_participant_id) REFERENCES participants (id) ON DELETE CASCADE,
    CONSTRAINT clarifications_reply_to_id_fkey FOREIGN KEY(reply_to_id) REFERENCES clarifications (id) ON DELETE CASCADE,
    CONSTRAINT clarifications_problem_id_fkey FOREIGN KEY(problem_id) REFERENCES problems (id),
    CONSTRAINT clarifications_created_by_fkey FOREIGN KEY(created_by) REFERENCES users (id),
    CONSTRAINT clarifications_claimed_by_fkey FOREIGN KEY(claimed_by) REFERENCES users (id)
)

CREATE INDEX clarifications_from_participant_id_number ON clarifications (from_participant_id, number)

CREATE INDEX clarifications_reply_to_id ON clarifications (reply_to_id)

CREATE INDEX clarifications_to_participant_id_number ON clarifications (to_participant_id, number)

CREATE TABLE contest_feed_events (
    feed_id TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    part TEXT NOT NULL,
    collection TEXT NOT NULL,
    object_id TEXT NOT NULL,
    data TEXT,
    is_live BOOLEAN NOT NULL,
    CONSTRAINT contest_feed_events_pkey PRIMARY KEY (feed_id, sequence),
    CONSTRAINT contest_feed_events_feed_id_fkey FOREIGN KEY(feed_id) REFERENCES contest_feeds (id) ON DELETE CASCADE
)

CREATE INDEX contest_feed_events_feed_id_part ON contest_feed_events (feed_id, part)

CREATE TABLE contest_group_members (
    group_id TEXT NOT NULL,
    participant_id TEXT NOT NULL,
    CONSTRAINT contest_group_members_pkey PRIMARY KEY (group_id, participant_id),
    CONSTRAINT contest_group_members_group_id_fkey FOREIGN KEY(group_id) REFERENCES contest_groups (id) ON DELETE CASCADE,
    CONSTRAINT contest_group_members_participant_id_fkey FOREIGN KEY(participant_id) REFERENCES participants (id) ON DELETE CASCADE
)

CREATE INDEX contest_group_members_participant_id ON contest_group_members (participant_id)

CREATE TABLE contest_problems (
    contest_id TEXT NOT NULL,
    problem_id TEXT NOT NULL,
    revision_id TEXT NOT NULL,
    label TEXT NOT NULL,
    ordinal BIGINT NOT NULL,
    rgb TEXT,
    color TEXT,
    alias TEXT,
    points_micro BIGINT DEFAULT '100000000' NOT NULL,
    opens_ct_us BIGINT,
    closes_ct_us BIGINT,
    accepts BOOLEAN DEFAULT true NOT NULL,
    judging_paused BOOLEAN DEFAULT false NOT NULL,
    allowed_languages JSONB,
    version BIGINT DEFAULT '1' NOT NULL,
    CONSTRAINT contest_problems_pkey PRIMARY KEY (contest_id, problem_id),
    CONSTRAINT contest_problems_contest_id_label_key UNIQUE (contest_id, label),
    CONSTRAINT contest_problems_contest_id_ordinal_key UNIQUE (contest_id, ordinal),
    CONSTRAINT contest_problems_points_not_negative CHECK (points_micro >= 0),
    CONSTRAINT contest_problems_label_length CHECK (length(label) BETWEEN 1 AND 36),
    CONSTRAINT contest_problems_opens_first CHECK (opens_ct_us IS NULL OR closes_ct_us IS NULL OR opens_ct_us < closes_ct_us),
    CONSTRAINT contest_problems_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT contest_problems_problem_id_fkey FOREIGN KEY(problem_id) REFERENCES problems (id),
    CONSTRAINT contest_problems_revision_id_fkey FOREIGN KEY(revision_id) REFERENCES problem_revisions (id)
)

CREATE INDEX contest_problems_problem_id ON contest_problems (problem_id)

CREATE TABLE manifest_files (
    revision_id TEXT NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    is_secret BOOLEAN DEFAULT false NOT NULL,
    CONSTRAINT manifest_files_pkey PRIMARY KEY (revision_id, path),
    CONSTRAINT manifest_files_size_bytes_not_negative CHECK (size_bytes >= 0),
    CONSTRAINT manifest_files_revision_id_fkey FOREIGN KEY(revision_id) REFERENCES problem_revisions (id) ON DELETE CASCADE
)

CREATE INDEX manifest_files_digest ON manifest_files (digest)

CREATE TABLE participant_members (
    contest_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    run_no BIGINT DEFAULT '0' NOT NULL,
    participant_id TEXT NOT NULL,
    CONSTRAINT participant_members_pkey PRIMARY KEY (contest_id, user_id, run_no),
    CONSTRAINT participant_members_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT participant_members_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT participant_members_participant_id_fkey FOREIGN KEY(participant_id) REFERENCES participants (id) ON DELETE CASCADE
)

CREATE INDEX participant_members_participant_id ON participant_members (participant_id)

CREATE INDEX participant_members_user_id ON participant_members (user_id)

CREATE TABLE prints (
    id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    participant_id TEXT,
    user_id TEXT NOT NULL,
    file_name TEXT NOT NULL,
    body TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    pages BIGINT NOT NULL,
    state TEXT DEFAULT 'pending' NOT NULL,
    claimed_by TEXT,
    created_at BIGINT NOT NULL,
    finished_at BIGINT,
    CONSTRAINT prints_pkey PRIMARY KEY (id),
    CONSTRAINT prints_contest_id_number_key UNIQUE (contest_id, number),
    CONSTRAINT prints_state_known CHECK (state = ANY ('{pending,printing,done}')),
    CONSTRAINT prints_finished_at_exactly_when CHECK ((finished_at IS NOT NULL) = (state = 'done')),
    CONSTRAINT prints_claimed_by_exactly_when CHECK ((claimed_by IS NULL) = (state = 'pending')),
    CONSTRAINT prints_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT prints_participant_id_fkey FOREIGN KEY(participant_id) REFERENCES participants (id) ON DELETE CASCADE,
    CONSTRAINT prints_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id),
    CONSTRAINT prints_claimed_by_fkey FOREIGN KEY(claimed_by) REFERENCES users (id)
)

CREATE INDEX prints_participant_id_created_at ON prints (participant_id, created_at)

CREATE TABLE problem_imports (
    id TEXT NOT NULL,
    purpose TEXT DEFAULT 'import' NOT NULL,
    created_by TEXT NOT NULL,
    job_id TEXT NOT NULL,
    archive_digest TEXT,
    file_name TEXT NOT NULL,
    requested JSONB NOT NULL,
    state TEXT DEFAULT 'pending' NOT NULL,
    problem_id TEXT,
    revision_id TEXT,
    findings JSONB,
    jury JSONB,
    error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    finished_at BIGINT,
    CONSTRAINT problem_imports_pkey PRIMARY KEY (id),
    CONSTRAINT problem_imports_purpose_known CHECK (purpose = ANY ('{import,verify}')),
    CONSTRAINT problem_imports_state_known CHECK (state = ANY ('{pending,running,succeeded,failed,canceled}')),
    CONSTRAINT problem_imports_finished_at_exactly_when CHECK ((finished_at IS NULL) = (state IN ('pending', 'running'))),
    CONSTRAINT problem_imports_created_by_fkey FOREIGN KEY(created_by) REFERENCES users (id),
    CONSTRAINT problem_imports_problem_id_fkey FOREIGN KEY(problem_id) REFERENCES problems (id),
    CONSTRAINT problem_imports_revision_id_fkey FOREIGN KEY(revision_id) REFERENCES problem_revisions (id)
)

CREATE INDEX problem_imports_created_by_id ON problem_imports (created_by, id)

CREATE INDEX problem_imports_revision_id_id ON problem_imports (revision_id, id)

CREATE TABLE scoreboard_cells (
    participant_id TEXT NOT NULL,
    problem_id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    jury TEXT NOT NULL,
    public TEXT NOT NULL,
    jury_version BIGINT NOT NULL,
    public_version BIGINT NOT NULL,
    CONSTRAINT scoreboard_cells_pkey PRIMARY KEY (participant_id, problem_id),
    CONSTRAINT scoreboard_cells_participant_id_fkey FOREIGN KEY(participant_id) REFERENCES participants (id) ON DELETE CASCADE,
    CONSTRAINT scoreboard_cells_problem_id_fkey FOREIGN KEY(problem_id) REFERENCES problems (id),
    CONSTRAINT scoreboard_cells_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE
)

CREATE INDEX scoreboard_cells_contest_id ON scoreboard_cells (contest_id)

CREATE TABLE scoreboard_rows (
    participant_id TEXT NOT NULL,
    view TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    k1 BIGINT NOT NULL,
    k2 BIGINT NOT NULL,
    k3 BIGINT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT scoreboard_rows_pkey PRIMARY KEY (participant_id, view),
    CONSTRAINT scoreboard_rows_view_known CHECK (view = ANY ('{jury,public}')),
    CONSTRAINT scoreboard_rows_participant_id_fkey FOREIGN KEY(participant_id) REFERENCES participants (id) ON DELETE CASCADE,
    CONSTRAINT scoreboard_rows_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE
)

CREATE INDEX scoreboard_rows_contest_id_view ON scoreboard_rows (contest_id, view)

CREATE TABLE submissions (
    id TEXT NOT NULL,
    number BIGINT GENERATED ALWAYS AS IDENTITY,
    user_id TEXT NOT NULL,
    problem_id TEXT NOT NULL,
    revision_id TEXT NOT NULL,
    contest_id TEXT,
    language TEXT NOT NULL,
    source_digest TEXT NOT NULL,
    source_format TEXT DEFAULT 'text' NOT NULL,
    source_bytes BIGINT NOT NULL,
    status TEXT DEFAULT 'pending' NOT NULL,
    prior_status TEXT,
    verdict TEXT,
    score DOUBLE PRECISION,
    time_ms BIGINT,
    mem_kb BIGINT,
    judged_by_job_id TEXT,
    version BIGINT DEFAULT '1' NOT NULL,
    actor TEXT,
    reason TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    finished_at BIGINT,
    CONSTRAINT submissions_pkey PRIMARY KEY (id),
    CONSTRAINT submissions_source_format_known CHECK (source_format = ANY ('{text,files}')),
    CONSTRAINT submissions_status_known CHECK (status = ANY ('{pending,judging,accepted,wrong_answer,error,canceled}')),
    CONSTRAINT submissions_verdict_known CHECK (verdict = ANY ('{AC,PA,WA,OLE,TLE,MLE,RE,CE,SE}')),
    CONSTRAINT submissions_finished_at_exactly_when CHECK ((finished_at IS NOT NULL) = (status = ANY ('{accepted,canceled,error,wrong_answer}'))),
    CONSTRAINT submissions_verdict_exactly_when CHECK ((verdict IS NOT NULL) = (status = ANY ('{accepted,error,wrong_answer}'))),
    CONSTRAINT submissions_number_key UNIQUE (number),
    CONSTRAINT submissions_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id),
    CONSTRAINT submissions_problem_id_fkey FOREIGN KEY(problem_id) REFERENCES problems (id),
    CONSTRAINT submissions_revision_id_fkey FOREIGN KEY(revision_id) REFERENCES problem_revisions (id),
    CONSTRAINT submissions_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id)
)

CREATE INDEX submissions_contest_id_id ON submissions (contest_id, id)

CREATE INDEX submissions_judged ON submissions (user_id, problem_id, verdict, contest_id) WHERE verdict IS NOT NULL

CREATE INDEX submissions_open ON submissions (user_id) WHERE finished_at IS NULL

CREATE INDEX submissions_problem_id_id ON submissions (problem_id, id)

CREATE INDEX submissions_user_id_id ON submissions (user_id, id)

CREATE TABLE clarification_groups (
    clarification_id TEXT NOT NULL,
    group_id TEXT NOT NULL,
    CONSTRAINT clarification_groups_pkey PRIMARY KEY (clarification_id, group_id),
    CONSTRAINT clarification_groups_clarification_id_fkey FOREIGN KEY(clarification_id) REFERENCES clarifications (id) ON DELETE CASCADE,
    CONSTRAINT clarification_groups_group_id_fkey FOREIGN KEY(group_id) REFERENCES contest_groups (id) ON DELETE CASCADE
)

CREATE INDEX clarification_groups_group_id ON clarification_groups (group_id)

CREATE TABLE contest_event_log (
    id BIGSERIAL NOT NULL,
    xid BIGINT DEFAULT CAST(CAST(pg_current_xact_id() AS text) AS bigint) NOT NULL,
    contest_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    clarification_id TEXT,
    submission_id TEXT,
    transition TEXT,
    at BIGINT NOT NULL,
    CONSTRAINT contest_event_log_pkey PRIMARY KEY (id),
    CONSTRAINT contest_event_log_kind_known CHECK (kind = ANY ('{message,verdict,transition}')),
    CONSTRAINT contest_event_log_transition_known CHECK (transition = ANY ('{start,freeze,end,thaw,finalize,end_of_updates}')),
    CONSTRAINT contest_event_log_clarification_exactly_when CHECK ((kind = 'message') = (clarification_id IS NOT NULL)),
    CONSTRAINT contest_event_log_submission_exactly_when CHECK ((kind = 'verdict') = (submission_id IS NOT NULL)),
    CONSTRAINT contest_event_log_transition_exactly_when CHECK ((kind = 'transition') = (transition IS NOT NULL)),
    CONSTRAINT contest_event_log_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id) ON DELETE CASCADE,
    CONSTRAINT contest_event_log_clarification_id_fkey FOREIGN KEY(clarification_id) REFERENCES clarifications (id) ON DELETE CASCADE,
    CONSTRAINT contest_event_log_submission_id_fkey FOREIGN KEY(submission_id) REFERENCES submissions (id) ON DELETE CASCADE
)

CREATE INDEX contest_event_log_clarification_id ON contest_event_log (clarification_id)

CREATE INDEX contest_event_log_contest_id_xid_id ON contest_event_log (contest_id, xid, id)

CREATE INDEX contest_event_log_submission_id ON contest_event_log (submission_id)

CREATE INDEX contest_event_log_xid_id ON contest_event_log (xid, id)

CREATE TABLE contest_submissions (
    submission_id TEXT NOT NULL,
    contest_id TEXT NOT NULL,
    participant_id TEXT NOT NULL,
    problem_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    received_at BIGINT NOT NULL,
    official BOOLEAN DEFAULT false NOT NULL,
    score_micro BIGINT,
    max_score_micro BIGINT,
    subtasks JSONB,
    ignored_at BIGINT,
    verified_at BIGINT,
    verified_by TEXT,
    verified_verdict TEXT,
    override_verdict TEXT,
    override_score_micro BIGINT,
    overridden_at BIGINT,
    overridden_by TEXT,
    override_reason TEXT,
    version BIGINT DEFAULT '1' NOT NULL,
    CONSTRAINT contest_submissions_pkey PRIMARY KEY (submission_id),
    CONSTRAINT contest_submissions_contest_id_number_key UNIQUE (contest_id, number),
    CONSTRAINT contest_submissions_override_verdict_known CHECK (override_verdict = ANY ('{AC,PA,WA,OLE,TLE,MLE,RE,CE,SE}')),
    CONSTRAINT contest_submissions_verified_verdict_known CHECK (verified_verdict = ANY ('{AC,PA,WA,OLE,TLE,MLE,RE,CE,SE}')),
    CONSTRAINT contest_submissions_overridden_at_exactly_when CHECK ((override_verdict IS NULL) = (overridden_at IS NULL)),
    CONSTRAINT contest_submissions_submission_id_fkey FOREIGN KEY(submission_id) REFERENCES submissions (id) ON DELETE CASCADE,
    CONSTRAINT contest_submissions_contest_id_fkey FOREIGN KEY(contest_id) REFERENCES contests (id),
    CONSTRAINT contest_submissions_participant_id_fkey FOREIGN KEY(participant_id) REFERENCES participants (id),
    CONSTRAINT contest_submissions_problem_id_fkey FOREIGN KEY(problem_id) REFERENCES problems (id),
    CONSTRAINT contest_submissions_verified_by_fkey FOREIGN KEY(verified_by) REFERENCES users (id),
    CONSTRAINT contest_submissions_overridden_by_fkey FOREIGN KEY(overridden_by) REFERENCES users (id)
)

CREATE INDEX contest_submissions_contest_id_problem_id_number ON contest_submissions (contest_id, problem_id, number)

CREATE INDEX contest_submissions_participant_id_problem_id_number ON contest_submissions (participant_id, problem_id, number)

CREATE TABLE jobs (
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    dedupe_key TEXT,
    submission_id TEXT,
    rejudge_batch_id TEXT,
    chain_run_id TEXT,
    node_id TEXT,
    origin_job_id TEXT,
    status TEXT DEFAULT 'pending' NOT NULL,
    prior_status TEXT,
    attempt_id BIGINT DEFAULT '0' NOT NULL,
    max_attempts BIGINT DEFAULT '4' NOT NULL,
    priority BIGINT DEFAULT '2' NOT NULL,
    timeout_ms BIGINT,
    available_at BIGINT NOT NULL,
    lease_owner TEXT,
    lease_until BIGINT,
    payload JSONB DEFAULT '{}' NOT NULL,
    result JSONB,
    actor TEXT,
    reason TEXT,
    error_code TEXT,
    error TEXT,
    trace_id TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    queued_at BIGINT,
    started_at BIGINT,
    finished_at BIGINT,
    heartbeat_at BIGINT,
    CONSTRAINT jobs_pkey PRIMARY KEY (id),
    CONSTRAINT jobs_status_known CHECK (status = ANY ('{pending,queued,running,succeeded,failed,canceled}')),
    CONSTRAINT jobs_finished_at_exactly_when CHECK ((finished_at IS NOT NULL) = (status = ANY ('{canceled,failed,succeeded}'))),
    CONSTRAINT jobs_lease_owner_exactly_when CHECK ((lease_owner IS NOT NULL) = (status IN ('running'))),
    CONSTRAINT jobs_lease_until_exactly_when CHECK ((lease_until IS NOT NULL) = (status IN ('running'))),
    CONSTRAINT jobs_attempt_id_bounded CHECK (attempt_id >= 0 AND attempt_id <= max_attempts),
    CONSTRAINT jobs_submission_id_fkey FOREIGN KEY(submission_id) REFERENCES submissions (id),
    CONSTRAINT jobs_rejudge_batch_id_fkey FOREIGN KEY(rejudge_batch_id) REFERENCES rejudge_batches (id),
    CONSTRAINT jobs_chain_run_id_fkey FOREIGN KEY(chain_run_id) REFERENCES chain_runs (id),
    CONSTRAINT jobs_origin_job_id_fkey FOREIGN KEY(origin_job_id) REFERENCES jobs (id)
)
 WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)

CREATE INDEX jobs_batch ON jobs (rejudge_batch_id) WHERE rejudge_batch_id IS NOT NULL

CREATE UNIQUE INDEX jobs_dedupe ON jobs (kind, dedupe_key) WHERE dedupe_key IS NOT NULL

CREATE INDEX jobs_held ON jobs (id) WHERE available_at >= 7258118400000000 AND finished_at IS NULL

CREATE INDEX jobs_kept_a_while ON jobs (finished_at) WHERE kind IN ('callback', 'evaluate', 'execute', 'mail', 'webhook') AND finished_at IS NOT NULL

CREATE INDEX jobs_node ON jobs (chain_run_id, node_id) WHERE chain_run_id IS NOT NULL

CREATE INDEX jobs_origin ON jobs (origin_job_id) WHERE origin_job_id IS NOT NULL

CREATE INDEX jobs_queued ON jobs (queued_at) WHERE status = 'queued'

CREATE INDEX jobs_running ON jobs (id) WHERE status = 'running'

CREATE INDEX jobs_submission ON jobs (submission_id) WHERE submission_id IS NOT NULL

CREATE INDEX jobs_waiting ON jobs (priority, available_at) WHERE status IN ('pending', 'queued')

CREATE TABLE submission_status_log (
    id BIGSERIAL NOT NULL,
    submission_id TEXT NOT NULL,
    from_status TEXT NOT NULL,
    to_status TEXT NOT NULL,
    verdict TEXT,
    job_id TEXT,
    version BIGINT NOT NULL,
    actor TEXT,
    reason TEXT,
    at BIGINT NOT NULL,
    xid BIGINT DEFAULT CAST(CAST(pg_current_xact_id() AS text) AS bigint) NOT NULL,
    CONSTRAINT submission_status_log_pkey PRIMARY KEY (id),
    CONSTRAINT submission_status_log_version_positive CHECK (version > 0)
)

CREATE INDEX submission_status_log_submission_id ON submission_status_log (submission_id)

CREATE INDEX submission_status_log_xid_id ON submission_status_log (xid, id)

CREATE TABLE case_results (
    job_id TEXT NOT NULL,
    attempt_id BIGINT NOT NULL,
    ordinal BIGINT NOT NULL,
    name TEXT NOT NULL,
    group_name TEXT,
    verdict TEXT NOT NULL,
    score DOUBLE PRECISION,
    time_ms BIGINT NOT NULL,
    wall_ms BIGINT NOT NULL,
    mem_kb BIGINT NOT NULL,
    exit_code BIGINT,
    exit_signal BIGINT,
    limit_hit TEXT,
    message TEXT,
    CONSTRAINT case_results_pkey PRIMARY KEY (job_id, ordinal),
    CONSTRAINT case_results_verdict_known CHECK (verdict = ANY ('{AC,PA,WA,OLE,TLE,MLE,RE,CE,SE}')),
    CONSTRAINT case_results_job_id_fkey FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
)

CREATE TABLE dead_letters (
    id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    attempt_id BIGINT NOT NULL,
    error_code TEXT NOT NULL,
    error TEXT,
    state TEXT DEFAULT 'open' NOT NULL,
    replayed_by_job_id TEXT,
    resolved_by TEXT,
    note TEXT,
    created_at BIGINT NOT NULL,
    resolved_at BIGINT,
    CONSTRAINT dead_letters_pkey PRIMARY KEY (id),
    CONSTRAINT dead_letters_job_id_key UNIQUE (job_id),
    CONSTRAINT dead_letters_state_known CHECK (state = ANY ('{open,replayed,discarded}')),
    CONSTRAINT dead_letters_resolved_at_exactly_when CHECK ((resolved_at IS NULL) = (state = 'open')),
    CONSTRAINT dead_letters_job_id_fkey FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE,
    CONSTRAINT dead_letters_replayed_by_job_id_fkey FOREIGN KEY(replayed_by_job_id) REFERENCES jobs (id)
)

CREATE INDEX dead_letters_open ON dead_letters (created_at) WHERE state = 'open'

CREATE INDEX dead_letters_replayed_by ON dead_letters (replayed_by_job_id) WHERE replayed_by_job_id IS NOT NULL

CREATE INDEX dead_letters_resolved ON dead_letters (resolved_at) WHERE resolved_at IS NOT NULL

CREATE TABLE evaluation_items (
    evaluation_id TEXT NOT NULL,
    record_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    shape TEXT NOT NULL,
    record TEXT NOT NULL,
    job_id TEXT NOT NULL,
    state TEXT DEFAULT 'pending' NOT NULL,
    verdict TEXT,
    result TEXT,
    sequence BIGINT,
    finished_at BIGINT,
    CONSTRAINT evaluation_items_pkey PRIMARY KEY (evaluation_id, record_id),
    CONSTRAINT evaluation_items_evaluation_id_sequence_key UNIQUE (evaluation_id, sequence),
    CONSTRAINT evaluation_items_state_known CHECK (state = ANY ('{pending,finished,failed,canceled}')),
    CONSTRAINT evaluation_items_verdict_known CHECK (verdict = ANY ('{AC,PA,WA,OLE,TLE,MLE,RE,CE,SE}')),
    CONSTRAINT evaluation_items_evaluation_id_fkey FOREIGN KEY(evaluation_id) REFERENCES evaluations (id) ON DELETE CASCADE,
    CONSTRAINT evaluation_items_job_id_fkey FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
)

CREATE INDEX evaluation_items_evaluation_id_state_verdict ON evaluation_items (evaluation_id, state, verdict)

CREATE INDEX evaluation_items_job_id ON evaluation_items (job_id)

CREATE TABLE executions (
    id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    language TEXT NOT NULL,
    source TEXT NOT NULL,
    limits JSONB NOT NULL,
    options JSONB DEFAULT '{}' NOT NULL,
    client_data JSONB,
    callback_url TEXT,
    state TEXT DEFAULT 'pending' NOT NULL,
    verdict TEXT,
    compile_message TEXT,
    created_at BIGINT NOT NULL,
    finished_at BIGINT,
    expires_at BIGINT NOT NULL,
    kept_bytes BIGINT DEFAULT '0' NOT NULL,
    CONSTRAINT executions_pkey PRIMARY KEY (id),
    CONSTRAINT executions_state_known CHECK (state = ANY ('{pending,finished,failed,canceled}')),
    CONSTRAINT executions_verdict_known CHECK (verdict = ANY ('{AC,PA,WA,OLE,TLE,MLE,RE,CE,SE}')),
    CONSTRAINT executions_user_id_fkey FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE,
    CONSTRAINT executions_job_id_fkey FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
)

CREATE INDEX executions_expires_at ON executions (expires_at)

CREATE INDEX executions_job_id ON executions (job_id)

CREATE INDEX executions_user_id_id ON executions (user_id, id)

CREATE TABLE job_attempts (
    job_id TEXT NOT NULL,
    attempt_id BIGINT NOT NULL,
    lease_owner TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT,
    error_code TEXT,
    error TEXT,
    CONSTRAINT job_attempts_pkey PRIMARY KEY (job_id, attempt_id)
)

CREATE TABLE job_progress (
    job_id TEXT NOT NULL,
    attempt_id BIGINT NOT NULL,
    stage TEXT NOT NULL,
    done BIGINT DEFAULT '0' NOT NULL,
    total BIGINT DEFAULT '0' NOT NULL,
    cases JSONB DEFAULT '[]' NOT NULL,
    updated_at BIGINT NOT NULL,
    CONSTRAINT job_progress_pkey PRIMARY KEY (job_id),
    CONSTRAINT job_progress_job_id_fkey FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
)
 WITH (fillfactor = 70)

CREATE INDEX job_progress_updated_at ON job_progress (updated_at)

CREATE TABLE job_status_log (
    id BIGSERIAL NOT NULL,
    job_id TEXT NOT NULL,
    from_status TEXT NOT NULL,
    to_status TEXT NOT NULL,
    attempt_id BIGINT NOT NULL,
    actor TEXT,
    reason TEXT,
    at BIGINT NOT NULL,
    CONSTRAINT job_status_log_pkey PRIMARY KEY (id)
)

CREATE INDEX job_status_log_job_id ON job_status_log (job_id)

CREATE TABLE outbox (
    id BIGSERIAL NOT NULL,
    job_id TEXT NOT NULL,
    priority BIGINT DEFAULT '2' NOT NULL,
    state TEXT DEFAULT 'pending' NOT NULL,
    attempts BIGINT DEFAULT '0' NOT NULL,
    dispatch_seq BIGINT DEFAULT '0' NOT NULL,
    next_attempt_at BIGINT NOT NULL,
    owner TEXT DEFAULT '' NOT NULL,
    turn_at BIGINT NOT NULL,
    last_error TEXT,
    dispatched_at BIGINT,
    stream_entry_id TEXT,
    due_at BIGINT NOT NULL,
    CONSTRAINT outbox_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_job_id_key UNIQUE (job_id),
    CONSTRAINT outbox_state_known CHECK (state = ANY ('{pending,delivered,dropped}')),
    CONSTRAINT outbox_job_id_fkey FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
)
 WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02)

CREATE INDEX outbox_owner ON outbox (priority, owner, turn_at) WHERE state = 'pending'

CREATE INDEX outbox_turn ON outbox (priority, turn_at, id, due_at) WHERE state = 'pending'

CREATE TABLE rejudge_items (
    batch_id TEXT NOT NULL,
    submission_id TEXT NOT NULL,
    job_id TEXT,
    old_verdict TEXT,
    old_score DOUBLE PRECISION,
    applied BOOLEAN DEFAULT false NOT NULL,
    revision_id TEXT,
    old_version BIGINT,
    old_time_ms BIGINT,
    old_mem_kb BIGINT,
    old_job_id TEXT,
    new_verdict TEXT,
    new_score DOUBLE PRECISION,
    new_time_ms BIGINT,
    new_mem_kb BIGINT,
    outcome TEXT,
    CONSTRAINT rejudge_items_pkey PRIMARY KEY (batch_id, submission_id),
    CONSTRAINT rejudge_items_batch_id_fkey FOREIGN KEY(batch_id) REFERENCES rejudge_batches (id) ON DELETE CASCADE,
    CONSTRAINT rejudge_items_submission_id_fkey FOREIGN KEY(submission_id) REFERENCES submissions (id),
    CONSTRAINT rejudge_items_job_id_fkey FOREIGN KEY(job_id) REFERENCES jobs (id)
)

CREATE INDEX rejudge_items_job_id ON rejudge_items (job_id)

CREATE TABLE webhook_deliveries (
    id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    job_id TEXT NOT NULL,
    event TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT DEFAULT 'pending' NOT NULL,
    response_status BIGINT,
    error TEXT,
    created_at BIGINT NOT NULL,
    finished_at BIGINT,
    CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (id),
    CONSTRAINT webhook_deliveries_state_known CHECK (state = ANY ('{pending,delivered,failed,canceled}')),
    CONSTRAINT webhook_deliveries_webhook_id_fkey FOREIGN KEY(webhook_id) REFERENCES webhooks (id) ON DELETE CASCADE,
    CONSTRAINT webhook_deliveries_job_id_fkey FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
)

CREATE INDEX webhook_deliveries_created_at ON webhook_deliveries (created_at)

CREATE INDEX webhook_deliveries_job_id ON webhook_deliveries (job_id)

CREATE INDEX webhook_deliveries_webhook_id_id ON webhook_deliveries (webhook_id, id)

CREATE TABLE execution_runs (
    execution_id TEXT NOT NULL,
    ordinal BIGINT NOT NULL,
    stdin TEXT NOT NULL,
    verdict TEXT,
    time_ms BIGINT,
    wall_ms BIGINT,
    mem_kb BIGINT,
    exit_code BIGINT,
    exit_signal BIGINT,
    limit_hit TEXT,
    stdout TEXT,
    stderr TEXT,
    is_base64 BOOLEAN DEFAULT false NOT NULL,
    is_truncated BOOLEAN DEFAULT false NOT NULL,
    CONSTRAINT execution_runs_pkey PRIMARY KEY (execution_id, ordinal),
    CONSTRAINT execution_runs_verdict_known CHECK (verdict = ANY ('{AC,PA,WA,OLE,TLE,MLE,RE,CE,SE}')),
    CONSTRAINT execution_runs_execution_id_fkey FOREIGN KEY(execution_id) REFERENCES executions (id) ON DELETE CASCADE
)

CREATE FUNCTION adjudge_refuse(guard text, old_status text, new_status text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE integrity_constraint_violation USING CONSTRAINT = guard, MESSAGE = concat(guard, ' refused ', old_status, ' -> ', new_status); END $$

CREATE FUNCTION jobs_guard_and_log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN WITH changed AS MATERIALIZED (SELECT n.actor AS new_actor, n.attempt_id AS new_attempt_id, n.error AS new_error, n.error_code AS new_error_code, n.id AS new_id, n.reason AS new_reason, n.status AS new_status, n.updated_at AS new_updated_at, o.attempt_id AS old_attempt_id, o.id AS old_id, o.lease_owner AS old_lease_owner, o.started_at AS old_started_at, o.status AS old_status FROM old_rows o FULL JOIN new_rows n ON n.id = o.id WHERE CASE WHEN o.id IS NULL THEN false WHEN (o.status IN ('canceled', 'failed', 'succeeded')) IS NOT FALSE THEN adjudge_refuse('jobs_terminal_is_final', o.status, n.status) WHEN ((o.status <> n.status OR o.attempt_id <> n.attempt_id) AND NOT o.status IN ('canceled', 'failed', 'succeeded') AND NOT (((o.status = 'pending' AND n.status IN ('canceled', 'failed', 'queued', 'running')) OR (o.status = 'queued' AND n.status IN ('canceled', 'failed', 'pending', 'running')) OR (o.status = 'running' AND n.status IN ('canceled', 'failed', 'pending', 'running', 'succeeded'))) AND (n.attempt_id > o.attempt_id) = (n.status = 'running'))) IS NOT FALSE THEN adjudge_refuse('jobs_legal_edge', o.status, n.status) ELSE (o.status <> n.status OR o.attempt_id <> n.attempt_id) OR o.status = 'running' AND (o.status <> n.status OR o.attempt_id <> n.attempt_id) END), jobs_log AS (INSERT INTO job_status_log (job_id, from_status, to_status, attempt_id, actor, reason, at) SELECT new_id, old_status, new_status, new_attempt_id, new_actor, new_reason, new_updated_at FROM changed WHERE (old_status <> new_status OR old_attempt_id <> new_attempt_id)) INSERT INTO job_attempts (job_id, attempt_id, lease_owner, started_at, ended_at, outcome, reason, error_code, error) SELECT old_id, old_attempt_id, old_lease_owner, old_started_at, new_updated_at, CASE new_status WHEN 'pending' THEN 'released' WHEN 'running' THEN 'reclaimed' ELSE new_status END, new_reason, new_error_code, new_error FROM changed WHERE old_status = 'running' AND (old_status <> new_status OR old_attempt_id <> new_attempt_id); RETURN NULL; END $$

CREATE TRIGGER jobs_guard_and_log AFTER UPDATE ON jobs REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION jobs_guard_and_log()

CREATE FUNCTION jobs_legal_edge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NOT OLD.status IN ('canceled', 'failed', 'succeeded') AND NOT (((OLD.status = 'pending' AND NEW.status IN ('canceled', 'failed', 'queued', 'running')) OR (OLD.status = 'queued' AND NEW.status IN ('canceled', 'failed', 'pending', 'running')) OR (OLD.status = 'running' AND NEW.status IN ('canceled', 'failed', 'pending', 'running', 'succeeded'))) AND (NEW.attempt_id > OLD.attempt_id) = (NEW.status = 'running')) THEN PERFORM adjudge_refuse('jobs_legal_edge', OLD.status, NEW.status); END IF; RETURN NULL; END $$

CREATE TRIGGER jobs_legal_edge AFTER UPDATE OF status, attempt_id ON jobs FOR EACH ROW WHEN (OLD.status = NEW.status AND OLD.attempt_id = NEW.attempt_id) EXECUTE FUNCTION jobs_legal_edge()

CREATE FUNCTION submissions_guard_and_log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN WITH changed AS MATERIALIZED (SELECT n.actor AS new_actor, n.id AS new_id, n.judged_by_job_id AS new_judged_by_job_id, n.reason AS new_reason, n.status AS new_status, n.updated_at AS new_updated_at, n.verdict AS new_verdict, n.version AS new_version, o.status AS old_status, o.version AS old_version FROM old_rows o FULL JOIN new_rows n ON n.id = o.id WHERE CASE WHEN o.id IS NULL THEN false WHEN (NOT (n.version = o.version + 1 AND (((o.status = 'pending' AND n.status IN ('canceled', 'judging')) OR (o.status = 'judging' AND n.status IN ('accepted', 'canceled', 'error', 'wrong_answer'))) OR (o.status = n.status AND NOT o.status IN ('accepted', 'canceled', 'error', 'wrong_answer')) OR (o.status IN ('accepted', 'canceled', 'error', 'wrong_answer') AND n.status IN ('accepted', 'canceled', 'error', 'wrong_answer') AND COALESCE(n.judged_by_job_id, '') <> COALESCE(o.judged_by_job_id, ''))))) IS NOT FALSE THEN adjudge_refuse('submissions_legal_edge', o.status, n.status) ELSE o.version <> n.version END) INSERT INTO submission_status_log (submission_id, from_status, to_status, verdict, job_id, version, actor, reason, at) SELECT new_id, old_status, new_status, new_verdict, new_judged_by_job_id, new_version, new_actor, new_reason, new_updated_at FROM changed WHERE old_version <> new_version; RETURN NULL; END $$

CREATE TRIGGER submissions_guard_and_log AFTER UPDATE ON submissions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION submissions_guard_and_log()

CREATE FUNCTION chain_runs_guard_and_log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NOT ((OLD.status = 'pending' AND NEW.status IN ('running', 'stopping')) OR (OLD.status = 'running' AND NEW.status IN ('failed', 'stopping', 'success')) OR (OLD.status = 'stopping' AND NEW.status IN ('stopped')) OR (OLD.status = 'failed' AND NEW.status IN ('running')) OR (OLD.status = 'stopped' AND NEW.status IN ('running'))) THEN PERFORM adjudge_refuse('chain_runs_legal_edge', OLD.status, NEW.status); END IF; IF OLD.status <> NEW.status THEN INSERT INTO chain_status_log (run_id, node_id, from_status, to_status, attempt, actor, reason, at) VALUES (NEW.id, NULL, OLD.status, NEW.status, NULL, NEW.actor, NEW.reason, NEW.updated_at); END IF; RETURN NULL; END $$

CREATE TRIGGER chain_runs_guard_and_log AFTER UPDATE OF status ON chain_runs FOR EACH ROW EXECUTE FUNCTION chain_runs_guard_and_log()

CREATE FUNCTION chain_nodes_guard_and_log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.status <> NEW.status AND NOT ((OLD.status = 'pending' AND NEW.status IN ('running', 'skipped', 'stopped')) OR (OLD.status = 'running' AND NEW.status IN ('failed', 'retrying', 'stopped', 'success')) OR (OLD.status = 'retrying' AND NEW.status IN ('running', 'stopped')) OR (OLD.status = 'failed' AND NEW.status IN ('retrying', 'success')) OR (OLD.status = 'stopped' AND NEW.status IN ('pending', 'retrying', 'success')) OR (OLD.status = 'skipped' AND NEW.status IN ('pending'))) THEN PERFORM adjudge_refuse('chain_nodes_legal_edge', OLD.status, NEW.status); END IF; IF OLD.status <> NEW.status THEN INSERT INTO chain_status_log (run_id, node_id, from_status, to_status, attempt, actor, reason, at) VALUES (NEW.run_id, NEW.node_id, OLD.status, NEW.status, NEW.attempt, NEW.actor, NEW.reason, NEW.updated_at); END IF; RETURN NULL; END $$

CREATE TRIGGER chain_nodes_guard_and_log AFTER UPDATE OF status ON chain_nodes FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION chain_nodes_guard_and_log()

CREATE FUNCTION contests_guard_and_log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.state <> NEW.state AND NOT ((OLD.state = 'draft' AND NEW.state IN ('published')) OR (OLD.state = 'published' AND NEW.state IN ('canceled', 'draft', 'finalized')) OR (OLD.state = 'finalized' AND NEW.state IN ('published'))) THEN PERFORM adjudge_refuse('contests_legal_edge', OLD.state, NEW.state); END IF; IF OLD.state <> NEW.state THEN INSERT INTO contest_state_log (contest_id, from_state, to_state, version, actor, reason, at) VALUES (NEW.id, OLD.state, NEW.state, NEW.version, NEW.actor, NEW.reason, NEW.updated_at); END IF; RETURN NULL; END $$

CREATE TRIGGER contests_guard_and_log AFTER UPDATE OF state ON contests FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION contests_guard_and_log()

CREATE FUNCTION contests_end_of_updates() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM adjudge_refuse('contests_end_of_updates', '', ''); RETURN NULL; END $$

CREATE TRIGGER contests_end_of_updates AFTER UPDATE ON contests FOR EACH ROW WHEN (OLD.end_of_updates_at IS NOT NULL) EXECUTE FUNCTION contests_end_of_updates()

CREATE FUNCTION awards_closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF TG_OP <> 'DELETE' AND EXISTS (SELECT 1 FROM contests WHERE id = NEW.contest_id AND end_of_updates_at IS NOT NULL) THEN PERFORM adjudge_refuse('contests_end_of_updates', '', ''); END IF; IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM contests WHERE id = OLD.contest_id AND end_of_updates_at IS NOT NULL) THEN PERFORM adjudge_refuse('contests_end_of_updates', '', ''); END IF; RETURN NULL; END $$

CREATE TRIGGER awards_closed AFTER INSERT OR UPDATE OR DELETE ON awards FOR EACH ROW EXECUTE FUNCTION awards_closed()

CREATE FUNCTION contest_problems_closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF TG_OP <> 'DELETE' AND EXISTS (SELECT 1 FROM contests WHERE id = NEW.contest_id AND end_of_updates_at IS NOT NULL) THEN PERFORM adjudge_refuse('contests_end_of_updates', '', ''); END IF; IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM contests WHERE id = OLD.contest_id AND end_of_updates_at IS NOT NULL) THEN PERFORM adjudge_refuse('contests_end_of_updates', '', ''); END IF; RETURN NULL; END $$

CREATE TRIGGER contest_problems_closed AFTER INSERT OR UPDATE OR DELETE ON contest_problems FOR EACH ROW EXECUTE FUNCTION contest_problems_closed()

CREATE FUNCTION removed_intervals_closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF TG_OP <> 'DELETE' AND EXISTS (SELECT 1 FROM contests WHERE id = NEW.contest_id AND end_of_updates_at IS NOT NULL) THEN PERFORM adjudge_refuse('contests_end_of_updates', '', ''); END IF; IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM contests WHERE id = OLD.contest_id AND end_of_updates_at IS NOT NULL) THEN PERFORM adjudge_refuse('contests_end_of_updates', '', ''); END IF; RETURN NULL; END $$

CREATE TRIGGER removed_intervals_closed AFTER INSERT OR UPDATE OR DELETE ON removed_intervals FOR EACH ROW EXECUTE FUNCTION removed_intervals_closed()

CREATE FUNCTION participants_closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF TG_OP <> 'DELETE' AND NEW.kind NOT IN ('practice', 'virtual') AND EXISTS (SELECT 1 FROM contests WHERE id = NEW.contest_id AND end_of_updates_at IS NOT NULL) THEN PERFORM adjudge_refuse('contests_end_of_updates', '', ''); END IF; IF TG_OP = 'DELETE' AND OLD.kind NOT IN ('practice', 'virtual') AND EXISTS (SELECT 1 FROM contests WHERE id = OLD.contest_id AND end_of_updates_at IS NOT NULL) THEN PERFORM adjudge_refuse('contests_end_of_updates', '', ''); END IF; RETURN NULL; END $$

CREATE TRIGGER participants_closed AFTER INSERT OR UPDATE OR DELETE ON participants FOR EACH ROW EXECUTE FUNCTION participants_closed()

CREATE FUNCTION contest_submissions_closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF TG_OP <> 'DELETE' AND EXISTS (SELECT 1 FROM contests WHERE id = NEW.contest_id AND end_of_updates_at IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM participants WHERE id = NEW.participant_id AND kind IN ('practice', 'virtual')) THEN PERFORM adjudge_refuse('contests_end_of_updates', '', ''); END IF; IF TG_OP = 'DELETE' AND EXISTS (SELECT 1 FROM contests WHERE id = OLD.contest_id AND end_of_updates_at IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM participants WHERE id = OLD.participant_id AND kind IN ('practice', 'virtual')) THEN PERFORM adjudge_refuse('contests_end_of_updates', '', ''); END IF; RETURN NULL; END $$

CREATE TRIGGER contest_submissions_closed AFTER INSERT OR UPDATE OR DELETE ON contest_submissions FOR EACH ROW EXECUTE FUNCTION contest_submissions_closed()

CREATE FUNCTION jobs_log_cleanup() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$ BEGIN DELETE FROM job_status_log WHERE job_id = ANY (ARRAY(SELECT id FROM old_rows)); DELETE FROM job_attempts WHERE job_id = ANY (ARRAY(SELECT id FROM old_rows)); RETURN NULL; END $$

CREATE TRIGGER jobs_log_cleanup AFTER DELETE ON jobs REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION jobs_log_cleanup()

CREATE FUNCTION submissions_log_cleanup() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$ BEGIN DELETE FROM submission_status_log WHERE submission_id = ANY (ARRAY(SELECT id FROM old_rows)); RETURN NULL; END $$

CREATE TRIGGER submissions_log_cleanup AFTER DELETE ON submissions REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION submissions_log_cleanup()

CREATE FUNCTION chain_runs_log_cleanup() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$ BEGIN DELETE FROM chain_status_log WHERE run_id = ANY (ARRAY(SELECT id FROM old_rows)); RETURN NULL; END $$

CREATE TRIGGER chain_runs_log_cleanup AFTER DELETE ON chain_runs REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION chain_runs_log_cleanup()

CREATE FUNCTION contests_log_cleanup() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$ BEGIN DELETE FROM contest_state_log WHERE contest_id = ANY (ARRAY(SELECT id FROM old_rows)); RETURN NULL; END $$

CREATE TRIGGER contests_log_cleanup AFTER DELETE ON contests REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION contests_log_cleanup()
