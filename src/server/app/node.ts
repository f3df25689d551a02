// What a node runs besides HTTP: it follows the change log, verifies credentials, and does work in the
// background.
import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { serverMetrics } from '../../lib/metrics/server-metrics.ts'
import { errorMessage } from '../../lib/startup-error.ts'
import { type Config, version } from '../config/server.ts'
import { startClusterFollower } from '../domain/cluster/follower.ts'
import type { Services } from '../domain/context.ts'
import { KeyRejections } from '../domain/keys/rejections.ts'
import { startMaintenance } from '../domain/maintenance/job.ts'
import { lastBackupReader, portUseReader, queueSizeReader } from '../domain/maintenance/queue-sizes.ts'
import { startQuotaWatch } from '../domain/quotas/watch.ts'
import type { SendMail } from '../mail.ts'
import { startChangeFollower } from '../verification/change-follower.ts'
import { createEdgeWorkspaces } from '../verification/edge-workspaces.ts'
import { startLastUsedTracker } from '../verification/last-used.ts'
import { createCredentialVerifier } from '../verification/verify.ts'

export type Node = Awaited<ReturnType<typeof startNode>>

export interface Mail {
  sendMail: SendMail | undefined
  /** The URL that links begin with. */
  publicUrl: () => string
}

/** Registers this process as a node and follows the change log. */
export async function startNode(
  config: Config,
  opened: Services,
  log: Logger,
  { sendMail, publicUrl }: Mail,
) {
  const { store, clock } = opened
  const identity = { id: opened.ids('node'), host: hostname(), pid: process.pid, version }
  const events = {
    onFailure: (error: unknown) => log.warn({ reason: errorMessage(error) }, 'change log polling failed'),
    onRecovery: () => log.info('change log polling recovered'),
  }
  const follower = await startChangeFollower(store, clock, identity, events, config.fencing)
  const services: Services = {
    ...opened,
    afterChange: follower.receive,
    afterReport: (counters) => quotaWatch.noteReport(counters),
    afterLocations: () => cluster.wake(),
  }
  const cluster = startClusterFollower(store, follower)
  const quotaWatch = startQuotaWatch(services, {
    follower,
    onFailure: (error) => log.warn({ reason: errorMessage(error) }, 'checking quotas failed; will retry'),
    onRecovery: () => log.info('checking quotas recovered'),
  })
  const lastUsed = startLastUsedTracker(store, clock, {
    onFailure: (error) => log.warn({ reason: errorMessage(error) }, 'flushing lastUsedAt failed; will retry'),
    onRecovery: () => log.info('flushing lastUsedAt recovered'),
  })
  const rejections = new KeyRejections(clock)
  const verifier = createCredentialVerifier({
    store,
    follower,
    lastUsed,
    onRejected: (hash) => rejections.record(hash),
    keysMax: config.limits.keysInMemory,
  })
  const edgeWorkspaces = createEdgeWorkspaces({
    store,
    follower,
    verifier,
    pairsMax: Math.ceil(config.limits.keysInMemory / 10),
  })
  const maintenance = startMaintenance(services, {
    id: identity.id,
    events: {
      onDeleted: (rows) => log.info({ rows }, 'deleted rows past their retention'),
      onFailure: (error) => log.warn({ reason: errorMessage(error) }, 'maintenance failed; will retry'),
      onRecovery: () => log.info('maintenance recovered'),
      onSilentEdge: ({ id, name }) =>
        log.warn({ edge: id, name }, 'edge has not reported its tunnels for 5 minutes'),
      onScarcePorts: (use) => log.warn(use, 'most ports for TCP tunnels are assigned; extend ADIT_TCP_PORTS'),
    },
    rejections,
    databaseUpForMs: follower.readableForMs,
    mail: sendMail && {
      send: sendMail,
      publicUrl,
      operator: config.operatorEmail,
      onFailure: (error) => log.warn({ reason: errorMessage(error) }, 'failed to send a notice; will retry'),
    },
  })
  return { services, follower, cluster, lastUsed, verifier, edgeWorkspaces, maintenance, quotaWatch }
}

/** What the metrics of this node read. */
export const nodeMetrics = ({ services, verifier, follower }: Node, openStreams: () => number) =>
  serverMetrics({
    version,
    instruments: services.instruments,
    keyVerdicts: verifier.keyVerdicts,
    edgeVerdicts: verifier.edgeVerdicts,
    follower,
    openStreams,
    poolUse: services.store.poolUse,
    areCommitsBlocked: services.store.areCommitsBlocked,
    queueSizes: queueSizeReader(services),
    lastBackup: lastBackupReader(services),
    portUse: portUseReader(services),
  })
