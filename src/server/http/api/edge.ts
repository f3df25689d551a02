// The edge API: /edge/v1. It has no CORS headers, because browsers do not call it.

import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { apis } from '../../../contract/apis.ts'
import { NO_LOCATIONS, type verifyKey } from '../../../contract/edge/operations.ts'
import type { Services } from '../../domain/context.ts'
import { Fault } from '../../domain/fault.ts'
import { isQuotaReached, QUOTA_REACHED } from '../../domain/quotas/limits.ts'
import { claimTunnels } from '../../domain/tunnels/claims.ts'
import { createOtherEdges } from '../../domain/tunnels/edges.ts'
import { findHost } from '../../domain/tunnels/hosts.ts'
import { syncTunnels } from '../../domain/tunnels/sync.ts'
import { ingestReport } from '../../domain/usage/reports.ts'
import type { WorkspaceRow, WorkspaceView } from '../../domain/workspaces/manage.ts'
import { type ChangeFollower, parsePosition } from '../../verification/change-follower.ts'
import type { EdgeWorkspaces, VerifiedKey } from '../../verification/edge-workspaces.ts'
import type { Grants } from '../../verification/grants.ts'
import {
  type CredentialVerifier,
  type InvalidCredential,
  type MaybePromise,
  thenMaybe,
} from '../../verification/verify.ts'
import { bearerToken, createAuthenticator, edgeMessages, keyMessages } from '../auth/authenticator.ts'
import { createCallerQueue } from '../limits/caller-queue.ts'
import { type Handlers, registerOperations } from '../operations/routes.ts'
import { keyChanges } from './change-events.ts'
import { ChangeStreams } from './change-streams.ts'
import { ClusterEvents, type ClusterServices } from './cluster/events.ts'
import { createOpenApiDocument } from './openapi-document.ts'
import { describeValidKey } from './valid-key.ts'

interface EdgeOptions {
  services: Services
  verifier: CredentialVerifier
  edgeWorkspaces: EdgeWorkspaces
  grants: Grants
  cluster: ClusterServices
  follower: ChangeFollower
  /** Aborted to end the streams. */
  closing: AbortSignal
  baseUrl: string | undefined
  describeWorkspace: (row: WorkspaceRow) => WorkspaceView
}

interface EdgeCaller {
  actor: { kind: 'edge'; id: string; group: string }
  credential: string
  /** Authenticates the client of a forwarded request by its key. */
  authenticateClient: () => MaybePromise<VerifiedKey>
}

type Callers = { anyone: undefined; edge: EdgeCaller }
type VerifyResult = Static<typeof verifyKey.response.schema>

/** Edges need not know why a key cannot exist. */
const reasonsForEdges: Record<
  InvalidCredential['reason'],
  Extract<VerifyResult, { valid: false }>['reason']
> = {
  malformed: 'unknown',
  other_kind: 'unknown',
  unknown: 'unknown',
  revoked: 'revoked',
  expired: 'expired',
  archived: 'archived',
}

/**
 * Claims of an edge in progress, and syncs. An edge sends one at a time; more would take the connections to
 * the database from other edges.
 */
const TUNNEL_CALLS_MAX = 2
/** The lock timeout of the database. */
const TUNNEL_CALL_WAIT_MS = 5_000

const waitedTooLong = () =>
  new Fault('unavailable', {
    message: 'Earlier calls of this edge are still in progress. Send one claim and one sync at a time.',
    retryAfterS: 1,
  })

export function registerEdgeApi(
  server: FastifyInstance,
  options: EdgeOptions,
): { openStreams: () => number } {
  const {
    services,
    verifier,
    edgeWorkspaces,
    grants,
    cluster,
    follower,
    closing,
    baseUrl,
    describeWorkspace,
  } = options
  const authenticateEdge = createAuthenticator(verifier.verifyEdge, edgeMessages)
  const authenticateKey = createAuthenticator(edgeWorkspaces.verifyKey, keyMessages)
  const streams = new ChangeStreams({
    closing,
    onReplaced: (edge) => server.log.warn({ edge }, 'edge has too many change streams; closed its oldest'),
  })
  const issueGrant = (edgeId: string, keyId: string) => grants.issue(edgeId, keyId, follower.databaseTime())
  const describeResult = (
    result: VerifiedKey | InvalidCredential,
    { edgeId, withGrant }: { edgeId: string; withGrant: boolean },
  ): VerifyResult =>
    result.valid
      ? {
          ...describeValidKey(verifier, result),
          ...(withGrant && { grant: issueGrant(edgeId, result.keyId) }),
          workspace: describeWorkspace(result.workspace),
        }
      : { valid: false as const, reason: reasonsForEdges[result.reason] }
  const findOtherEdges = createOtherEdges(services)
  const calls = createCallerQueue(TUNNEL_CALLS_MAX, { ms: TUNNEL_CALL_WAIT_MS, error: waitedTooLong })
  /** The edge, with the keys that its grants allow it to open tunnels with. */
  const findGranted = ({ id, group }: EdgeCaller['actor'], sentGrants: readonly string[]) => ({
    id,
    group,
    verifiedKeys: grants.findKeys(id, sentGrants, follower.databaseTime()),
  })

  /** The stream of the edge may come from a node that is ahead of this one. */
  function catchUpTo(after: string | undefined): MaybePromise<void> {
    const { sequence } = after === undefined ? follower.position() : parsePosition(after)
    if (sequence <= follower.position().sequence) return undefined
    return follower.catchUpTo(sequence).then(() => {
      if (sequence > follower.position().sequence)
        throw new Fault('unavailable', { message: 'This node is behind the stream of the edge. Try again.' })
    })
  }

  const handlers: Handlers<Callers, (typeof apis.edge.operations)[number]> = {
    'keys.verify': ({ actor }, { key, grant: withGrant = false, after }) =>
      thenMaybe(
        thenMaybe(catchUpTo(after), () => edgeWorkspaces.verifyKey(key, actor)),
        (result) => describeResult(result, { edgeId: actor.id, withGrant }),
      ),
    'requests.authorize': async ({ authenticateClient }) => {
      const { keyId, workspace } = await authenticateClient()
      const { slug, quota } = describeWorkspace(workspace)
      // Not 429, which nginx would turn into 500.
      if (isQuotaReached(quota, services.clock())) throw new Fault('forbidden', { message: QUOTA_REACHED })
      return { 'x-adit-workspace': slug, 'x-adit-key-id': keyId }
    },
    'keys.changes': ({ actor, credential }, { 'last-event-id': after, locations }) =>
      streams.open(actor.id, (closing) =>
        keyChanges(follower, {
          id: actor.id,
          describeWorkspace: async (id) => describeWorkspace(await verifier.getWorkspace(id)),
          isStillValid: async () => (await verifier.verifyEdge(credential)).valid,
          after: after === undefined ? undefined : parsePosition(after),
          closing,
          openCluster:
            locations === undefined
              ? undefined
              : (callbacks) =>
                  ClusterEvents.open(cluster, {
                    edge: actor,
                    after: locations === NO_LOCATIONS ? undefined : parsePosition(locations),
                    ...callbacks,
                  }),
        }),
      ),
    'tunnels.claim': ({ actor }, claim) =>
      calls.run(`claim ${actor.id}`, () => claimTunnels(services, findGranted(actor, claim.grants), claim)),
    'tunnels.sync': ({ actor }, sync) =>
      calls.run(`sync ${actor.id}`, async () => {
        const result = await syncTunnels(services, findGranted(actor, sync.grants ?? []), sync)
        return { ...result, ...(await findOtherEdges(actor)) }
      }),
    'usage.report': ({ actor }, report) => ingestReport(services, edgeWorkspaces.findIds, actor, report),
    'hosts.find': ({ actor }, { host }) => findHost(services, actor.group, host),
    'description.read': createOpenApiDocument(apis.edge, baseUrl),
  }

  registerOperations<Callers, typeof apis.edge>(server, apis.edge, handlers, {
    baseUrl,
    authenticate(request) {
      // If the edge sends its credential in X-Adit-Edge, the bearer token is the key of its client.
      const edgeHeader = request.headers['x-adit-edge'] as string | undefined
      const bearer = bearerToken(request)
      const credential = edgeHeader ?? bearer
      return thenMaybe(authenticateEdge(request, credential), ({ edgeId, group }) => {
        const actor = { kind: 'edge' as const, id: edgeId, group }
        return {
          actor,
          credential: credential as string,
          authenticateClient: () =>
            authenticateKey(request, edgeHeader === undefined ? undefined : bearer, actor),
        }
      })
    },
    reauthenticate: (request) => authenticateEdge(request, (request.caller as EdgeCaller).credential),
  })
  return { openStreams: () => streams.count }
}
