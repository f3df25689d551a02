// The metrics of `adit serve`. Labels have few values, which no client chooses: docs/operations/metrics.md
// lists them.
import { byLabel, counter, gauge, histogram, type Labels, type MetricDefinition } from './registry.ts'
import type { ServerInstruments } from './server-instruments.ts'

interface Verdicts {
  read(): Iterable<readonly [Labels, number]>
}

interface QueueSizes {
  mails: number
  webhookEvents: number
  failingEndpoints: number
}

/** Read at each scrape. */
interface ServerSources {
  readonly version: string
  readonly instruments: ServerInstruments
  readonly keyVerdicts: Verdicts
  readonly edgeVerdicts: Verdicts
  readonly follower: {
    isUpToDate(): boolean
    leaseAgeMs(): number
    ageMs(): number
    position(): { sequence: number }
  }
  openStreams(): number
  /** Undefined if the engine has no pool. */
  poolUse(): { used: number; idle: number; max: number; waiting: number } | undefined
  /** Undefined if the engine cannot tell. */
  areCommitsBlocked(): boolean | undefined
  /** Undefined if the database does not respond. */
  queueSizes(): Promise<QueueSizes | undefined>
  /** Milliseconds since 1970; null if there was none. */
  lastBackup(): Promise<number | null | undefined>
  /** Undefined also without TCP tunnels. */
  portUse(): Promise<{ assigned: number; total: number } | undefined>
}

export const serverMetrics = (sources: ServerSources): MetricDefinition[] => [
  gauge(
    'adit_build_info',
    'Version of Adit; the value is always 1.',
    () => [[{ version: sources.version }, 1]],
    'first',
  ),
  histogram(
    'http_server_request_duration_seconds',
    'Time from the head of a request to the end of its response, without streams of events.',
    () => sources.instruments.requests.read(),
  ),
  ...verifierMetrics(sources),
  ...usageMetrics(sources),
  gauge('adit_change_streams_open', 'Change streams that edges keep open.', sources.openStreams),
  ...poolMetrics(sources),
  ...queueMetrics(sources),
  ...portMetrics(sources),
  gauge(
    'adit_backup_timestamp_seconds',
    'Time of the last scheduled backup, in seconds since 1970.',
    async () => {
      const at = await sources.lastBackup()
      return at ? at / 1_000 : []
    },
    'max',
  ),
]

const verifierMetrics = ({ instruments, keyVerdicts, edgeVerdicts, follower }: ServerSources) => [
  counter('adit_verifications_total', 'Credentials verified, by verdict and cache.', () => [
    ...withLabel('kind', 'key', keyVerdicts.read()),
    ...withLabel('kind', 'edge', edgeVerdicts.read()),
  ]),
  gauge(
    'adit_lease_valid',
    'Whether the node may use its cache: 1 or 0.',
    () => (follower.isUpToDate() ? 1 : 0),
    'min',
  ),
  gauge(
    'adit_lease_age_seconds',
    'Time since the lease was renewed; it is valid for 2 seconds.',
    () => follower.leaseAgeMs() / 1_000,
    'max',
  ),
  gauge(
    'adit_change_log_lag_seconds',
    'Time since the change log was read to its end: the node may lack changes that are newer.',
    () => follower.ageMs() / 1_000,
    'max',
  ),
  gauge(
    'adit_change_log_sequence',
    'Sequence of the last change that the node has applied.',
    () => follower.position().sequence,
    'min',
  ),
  histogram('adit_propagation_wait_seconds', 'Time until a change was effective on every node.', () => [
    [{}, instruments.propagationWait],
  ]),
]

const usageMetrics = ({ instruments }: ServerSources) => [
  counter('adit_usage_reports_total', 'Usage reports merged.', () => instruments.usageReports),
  counter('adit_usage_items_total', 'Items of usage reports, by what became of them.', () =>
    byLabel('result', instruments.usageItems),
  ),
  histogram('adit_usage_merge_duration_seconds', 'Time of a transaction that merges usage reports.', () => [
    [{}, instruments.usageMerge],
  ]),
]

const poolMetrics = ({ poolUse, areCommitsBlocked }: ServerSources) => [
  gauge('adit_database_connections', 'Connections of the pool for requests.', () => {
    const use = poolUse()
    return use ? byLabel('state', { used: use.used, idle: use.idle }) : []
  }),
  gauge('adit_database_connections_max', 'Size of that pool.', () => poolUse()?.max ?? []),
  gauge(
    'adit_database_waiting',
    'Callers that wait for a connection of that pool.',
    () => poolUse()?.waiting ?? [],
  ),
  gauge(
    'adit_commits_blocked',
    'Whether commits hang, so that writes get 503: 1 or 0.',
    () => {
      const isBlocked = areCommitsBlocked()
      return isBlocked === undefined ? [] : Number(isBlocked)
    },
    'max',
  ),
]

const queueMetrics = ({ instruments, queueSizes }: ServerSources) => [
  counter('adit_mails_total', 'Emails given to the mail server, by result.', () =>
    byLabel('result', instruments.mails),
  ),
  gauge(
    'adit_mail_queue',
    'Emails about notices and alerts that wait to be sent, of all nodes.',
    async () => (await queueSizes())?.mails ?? [],
    'max',
  ),
  counter('adit_webhook_attempts_total', 'Attempts to deliver a webhook event, by result.', () =>
    byLabel('result', instruments.webhookAttempts),
  ),
  gauge(
    'adit_webhook_queue',
    'Webhook events that wait to be delivered, of all nodes.',
    async () => (await queueSizes())?.webhookEvents ?? [],
    'max',
  ),
  gauge(
    'adit_webhook_endpoints_failing',
    'Webhook endpoints whose last delivery failed, of all nodes.',
    async () => (await queueSizes())?.failingEndpoints ?? [],
    'max',
  ),
]

const portMetrics = ({ portUse }: ServerSources) => [
  gauge(
    'adit_tcp_ports_assigned',
    'Ports of the range for TCP tunnels that names have, of all nodes.',
    async () => (await portUse())?.assigned ?? [],
    'max',
  ),
  gauge(
    'adit_tcp_ports_max',
    'Ports of the range for TCP tunnels.',
    async () => (await portUse())?.total ?? [],
    'max',
  ),
]

function* withLabel(label: string, value: string, samples: Iterable<readonly [Labels, number]>) {
  for (const [labels, count] of samples) yield [{ [label]: value, ...labels }, count] as const
}
