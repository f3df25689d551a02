// Table types. Times are integer milliseconds since 1970 in UTC on both engines, independent of time zones
// and driver conversions. A flag is a nullable time: when it was set.
import type { ColumnType, Generated } from 'kysely'

/** A 64-bit counter: written as a bigint, read through `asText`, because drivers round above 2^53. */
type Counter = ColumnType<never, bigint, bigint>
type RolledUp = ColumnType<never, undefined, bigint>

/** What an entry of the change log is about. `key` and `edge` are revocations, `tunnels` instructions. */
export type ChangeKind =
  | 'key'
  | 'key-expiry'
  | 'edge'
  | 'workspace'
  | 'workspace-archived'
  | 'workspace-restored'
  | 'workspace-quota'
  | 'workspace-group'
  | 'tunnels'

export interface Tables {
  /** Edges that trust each other with the traffic of the workspaces of the group. */
  edge_groups: {
    name: string
    /** The last entry of its location log. */
    location_sequence: Generated<number>
    location_checksum: Generated<string>
  }
  schema_version: {
    id: number
    version: number
    /** The lowest schema version a program must know to run on this one. */
    min_compatible_version: number
  }
  workspaces: {
    id: string
    slug: string
    name: string
    created_at: number
    provisioned_at: number | null
    /** The policy: see domain/workspaces/policy.ts. Null restricts nothing. */
    key_days_max: number | null
    /** Since when API keys may not create or revoke keys. */
    keys_read_only_at: number | null
    /** The lowest role that may create keys; null for members, who create personal keys only. */
    key_creator_role: 'admin' | 'owner' | null
    two_factor_required_at: number | null
    /** See domain/workspaces/archive.ts. */
    archived_at: number | null
    /** Only edges of this group carry its tunnels. */
    edge_group: Generated<string>
    /** The user who created it in the dashboard. */
    creator_id: string | null
    /** Null is the default of the server, -1 no limit: see domain/quotas/limits.ts. */
    quota_bytes: number | null
    quota_requests: number | null
    quota_tunnels: number | null
    quota_keys: number | null
    /**
     * Whether 80 % or all of a quota of bytes or requests is used in the month that ends at
     * `usage_level_until`.
     */
    usage_level: 'near' | 'reached' | null
    usage_level_until: number | null
    /** Incremented with each change of quotas or the level, so that edges ignore earlier ones. */
    quota_revision: Generated<number>
  }
  api_keys: {
    id: string
    workspace_id: string
    /** The user whose personal key it is; null for a key of the workspace. */
    user_id: string | null
    label: string
    hash: string
    created_at: number
    last_used_at: number | null
    revoked_at: number | null
    /** Whole seconds, in milliseconds like all times; null for keys that do not expire. */
    expires_at: number | null
    created_by_kind: 'user' | 'key' | 'operator'
    /** Name of the user at that time, or id of the key or the operator. */
    created_by: string
    /** The first key of its lineage, which may be itself; null for keys that were never rotated. */
    lineage_id: string | null
    /** Number of the key in its lineage; a rotation creates the next one. */
    generation: Generated<number>
    /** Lifetime of a rotated key in milliseconds; 0 if it does not expire. */
    lifetime: number | null
    /** Last characters of the raw key. */
    last_four: string
    /** The host that an agent named when it signed in; null for other keys. */
    agent_host: string | null
    /** Set for the key of an agent, which is valid at /mcp only: whether it may manage keys. */
    agent_access: 'read' | 'manage' | null
  }
  /** See domain/keys/requests.ts. */
  key_requests: {
    id: string
    workspace_id: string
    user_id: string
    label: string
    created_at: number
    /** When it expires, or its approval. */
    expires_at: number
    state: 'pending' | 'approved' | 'declined' | 'withdrawn' | 'used'
    /** The user who has approved or declined it. */
    decided_by: string | null
    decided_at: number | null
  }
  users: {
    id: string
    name: string
    email: string
    /** 0 or 1. */
    email_verified: number
    /** 0 or 1. */
    two_factor_enabled: Generated<number>
    created_at: number
    updated_at: number
    disabled_at: number | null
  }
  /** Sign-in methods of a user: a password (`credential`) or an identity provider. */
  identities: {
    id: string
    user_id: string
    provider_id: string
    account_id: string
    password: string | null
    created_at: number
    updated_at: number
  }
  sessions: {
    id: string
    user_id: string
    /** Keyed hash of the token in the cookie. */
    token: string
    ip_address: string | null
    user_agent: string | null
    created_at: number
    expires_at: number
    /** The encrypted ID token of a single sign-on. */
    id_token: string | null
  }
  /** Sign-ins in progress: see store/accounts/challenges.ts. */
  verifications: {
    id: string
    /** The id of the user, if a two-factor code is required. */
    value: string
    failed_codes: Generated<number>
    expires_at: number
  }
  /** A row is in effect if `two_factor_enabled` of the user is 1. */
  two_factors: {
    user_id: string
    /** Encrypted. */
    secret: string
    /** JSON of keyed hashes of unused codes. */
    recovery_codes: string
    /** Wrong codes since the last correct one. */
    failed_codes: number
    locked_until: number | null
  }
  used_codes: { user_id: string; hash: string; at: number }
  members: {
    workspace_id: string
    user_id: string
    role: 'member' | 'admin' | 'owner'
    created_at: number
  }
  /** Invitation and password reset links. */
  links: {
    id: string
    hash: string
    purpose: 'join' | 'reset'
    /** Null for a setup link, whose recipient enters an address. */
    email: string | null
    /** 1 if the link proves control of the address: it was mailed there, or the operator created it. */
    proves_email: number
    workspace_id: string | null
    role: 'member' | 'admin' | 'owner' | null
    /** Display name of the creator; `creator_id` is set if it was a user. */
    created_by: string
    creator_id: string | null
    created_at: number
    expires_at: number
    /** When the link was used or revoked. */
    ended_at: number | null
  }
  /** Sign-ins from a terminal: see domain/devices/authorizations.ts. */
  device_authorizations: {
    /** SHA-256 of the device code. */
    hash: string
    /** Eight letters, without the hyphen. */
    user_code: string
    /** Host name that the device has sent. */
    device_name: string
    /** Client IP address of the device. */
    address: string
    created_at: number
    expires_at: number
    state: 'pending' | 'approved' | 'denied' | 'consumed' | 'failed'
    /** Set by the approval, like the next columns: the key to create, and who approved it. */
    workspace_id: string | null
    user_id: string | null
    session_id: string | null
    /** The request for a key, if the user may not create one. */
    request_id: string | null
    key_expires_at: number | null
    consumed_at: number | null
    /** The response with the key, encrypted with the device code. */
    encrypted_response: string | null
    /** Why an approved device got no key. */
    failure: string | null
  }
  edges: {
    id: string
    name: string
    /** Public URL, as the operator has set it. */
    url: string | null
    hash: string
    /** It never changes. */
    edge_group: Generated<string>
    created_at: number
    revoked_at: number | null
  }
  /** Workspaces for which an edge has verified an API key or reported usage. */
  edge_workspaces: {
    edge_id: string
    workspace_id: string
    verified_at: number
    /** Start of the hour in which `events` counts events of the edge's tunnels. */
    events_hour: Generated<number>
    events: Generated<number>
  }
  audit_log: {
    id: string
    /** Null for entries of the whole deployment, such as edges. */
    workspace_id: string | null
    at: number
    actor_kind: string
    actor_id: string
    action: string
    target_id: string
    /** Names at the time of the action, where they are not stored elsewhere. */
    actor_name: string | null
    target_name: string | null
    /** Client IP address, or host name of an operator's command, if known. */
    address: string | null
    /** Sign-in method, or the reason of a failure. */
    detail: string | null
    /** Number of repetitions within a minute that share the row; null means one. */
    count: number | null
    /** JSON of the fields that the action has changed, with their values before and after. */
    changes: string | null
    /** Position in exports; null before the first export that finds it. */
    position: number | null
  }
  /** One row: the last export position, and the last one that retention has deleted. */
  audit_export: {
    id: number
    position: number
    deleted_position: number
  }
  idempotent_responses: {
    workspace_id: string
    id: string
    encrypted_response: string
    created_at: number
  }
  /** Position of the latest change log entry: sequence and checksum. */
  change_log_head: { id: number; sequence: number; checksum: string }
  change_log: {
    sequence: number
    checksum: string
    previous_checksum: string
    kind: ChangeKind
    subject_id: string
    hash: string
    /** The new expiry of a key, if that has changed. */
    expires_at: number | null
    at: number
  }
  nodes: {
    id: string
    host: string
    pid: number
    version: string
    lease_ms: number
    /** The position in the change log up to which the node has read. */
    acknowledged_sequence: number
    acknowledged_checksum: string
    started_at: number
    heartbeat_at: number
  }
  /** The current run of each edge: see store/tunnels/edge-sessions.ts. */
  edge_sessions: {
    edge_id: string
    session: string
    /** The number of the last sync that was applied; 0 before the first. */
    sequence: number
    /** The end of the lease, by the database's clock. Afterwards the tunnels of the edge do not count. */
    lease_until: number
    last_sync_at: number | null
    started_at: number | null
    version: string | null
    /** Where it listens for other edges of its group, as it has reported. */
    peer_address: string | null
    /** The load that the edge has reported. */
    tunnels: number
    streams: number
    /** The position in the change log up to which the edge has applied it; null if it does not say. */
    acknowledged_sequence: number | null
    acknowledged_checksum: string | null
    /** The end of the last lease of earlier runs that acknowledged: their processes may still exist. */
    previous_lease_until: Generated<number>
  }
  /** Keys of tunnels that an edge has closed: it may open them again while it cannot claim them. */
  recent_keys: {
    edge_id: string
    key_id: string
    closed_at: number
  }
  /** One row for each connected tunnel client. */
  open_tunnels: {
    edge_id: string
    /** Chosen by the edge. */
    id: string
    /** The sync that last reported the tunnel, or the first one after the claim. */
    sequence: number
    workspace_id: string
    name: string
    type: 'http' | 'tcp'
    /** 0 or 1. */
    pool: number
    url: string
    key_id: string
    client_address: string
    client_version: string | null
    opened_at: number
    /** JSON of the access rules that its client asked for, without the password; null if there are none. */
    client_access: string | null
    /** SHA-256 of a secret that a client keeps when it connects to another edge. */
    resume_hash: string | null
    /** SHA-256 of a secret that all connections of a client share; null if it has none. */
    session_hash: string | null
    /** The public id: the connections of a client with this name, at all edges, are one tunnel. */
    tunnel_id: string
    /** At most 2^53 - 1, so drivers do not round them. */
    requests: number
    bytes_in: number
    bytes_out: number
    streams: number
    close_requested_at: number | null
    /**
     * Why the edge has to close the tunnel. `ended` means that a user closed it and it is no longer open, but
     * no sync has told the edge yet. A tunnel that has ended or moved does not count.
     */
    close_reason: 'requested' | 'ended' | 'moved' | null
    /** Name of the user who closed it. */
    close_requested_by: string | null
    /**
     * Set if the edge has to close the tunnel or apply other access rules: to the sequence of the sync whose
     * response said so, or 0 before that.
     */
    instruction_sequence: number | null
  }
  /** At which edges names are open, in commit order within each group. */
  location_log: {
    edge_group: string
    sequence: number
    checksum: string
    previous_checksum: string
    /** JSON: pairs of `<name>.<workspace>` and the id of an edge. */
    opened: string
    closed: string
    at: number
  }
  tunnel_names: {
    workspace_id: string
    name: string
    created_at: number
    last_used_at: number | null
    /** Null if the name is reserved. */
    expires_at: number | null
    /** JSON. A name with rules is always reserved. */
    access_rules: string | null
    /** The edge that counts the name in `peakTunnels`; null if it is not open. */
    counting_edge_id: string | null
    /** The time of the database's clock from which that edge counts it; without one, the next edge. */
    counting_from: number | null
  }
  /** A port belongs to its name until the row is deleted. */
  tcp_ports: {
    port: number
    workspace_id: string
    name: string
    assigned_at: number
    /** A time of the database's clock, renewed while the tunnel is open or the name is reserved. */
    last_used_at: number
  }
  notices: {
    kind: string
    /** The subject, e.g. the id of a key. */
    subject_id: string
    /** Unique per kind and subject, e.g. the time before the event, `7d`. */
    dedup_key: string
    workspace_id: string
    created_at: number
    /** Identifies the emails about the notice; null if there are none. */
    digest_id: string | null
    /** JSON of the text; null for keys that expire. */
    detail: string | null
  }
  /** Notices to the operator, each with the state of its email. */
  operator_alerts: {
    kind: string
    subject_id: string
    dedup_key: string
    created_at: number
    detail: string
    attempts: number
    due_at: number | null
  }
  /** Uses of an inactive key that were rejected in an hour. */
  key_rejections: {
    key_id: string
    hour: number
    attempts: number
  }
  notice_mails: {
    digest_id: string
    user_id: string
    workspace_id: string
    created_at: number
    attempts: number
    /** When to send the email; null if it was sent or will not be. */
    due_at: number | null
  }
  webhook_endpoints: {
    id: string
    workspace_id: string
    url: string
    description: string
    /** The selected event types, each with a comma before and after; null for all. */
    events: string | null
    /** Encrypted: see domain/webhooks/secrets.ts. */
    secret: string
    /** After a rotation, signs too until `previous_secret_until`. */
    previous_secret: string | null
    previous_secret_until: number | null
    created_at: number
    created_by: string | null
    disabled_at: number | null
    disabled_reason: string | null
    /** The position of the last delivery in its queue; 0 if there was none. */
    last_position: number
    /** The position of the delivery to send next. */
    next_position: number
    /** `last_position` when an owner last enabled it: earlier deliveries do not count as a backlog. */
    enabled_position: Generated<number>
    /** When to send the next delivery, or when the claim expires; null if there is nothing to send. */
    due_at: number | null
    /** Identifies the claim of the node that sends now. */
    claim: string | null
    /** When the next delivery first failed. */
    failing_since: number | null
  }
  /** An event for one endpoint: queue and log of deliveries. */
  webhook_deliveries: {
    endpoint_id: string
    id: string
    /** Consecutive. Assigned after the commit: see store/webhooks/positions.ts. */
    position: number | null
    /** Orders deliveries that are assigned positions at the same time. */
    sequence: number
    event_id: string
    type: string
    /** JSON, as it is sent. */
    body: string
    created_at: number
    attempts: number
    /** This and the next columns are about the last attempt. */
    attempted_at: number | null
    delivered_at: number | null
    url: string | null
    status: number | null
    duration_ms: number | null
    error: string | null
    response: string | null
  }
  /** One row: see store/maintenance/state.ts. */
  maintenance: {
    id: number
    /** The node that runs the job; empty between runs. */
    owner: string
    /** When the lease expires, or the next run is due. */
    due_at: number
    usage_floor: number
    usage_floor_at: number
    usage_cursor: string | null
    /** The time of the last scheduled backup; null if there was none. */
    backed_up_at: number | null
  }
  usage_counters: {
    workspace_id: string
    day: number
    edge_id: string
    epoch: string
    requests: Counter
    bytes_in: Counter
    bytes_out: Counter
    events: Counter
    last_seen: number | null
  }
  usage_hours: {
    workspace_id: string
    /** Start of the UTC hour. */
    hour: number
    /** Empty for the total of all edges. */
    edge_id: string
    /** The peaks of the minutes, encoded by `store/usage/hours.ts`. */
    open: string
  }
  usage_days: {
    workspace_id: string
    day: number
    requests: RolledUp
    bytes_in: RolledUp
    bytes_out: RolledUp
    events: RolledUp
    peak_tunnels: Generated<number>
    last_seen: number | null
  }
}
