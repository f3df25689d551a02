// The edges' side: /edge/v1. Edges and nobody else; no page of a browser has business here.
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { EDGE_PREFIX, edgeOperations, type verifyKey } from '../contract/edge.ts'
import { describe } from '../contract/openapi.ts'
import {
  type Directory,
  type GoodKey,
  type MaybeLater,
  type Refusal,
  whenKnown,
} from '../directory/directory.ts'
import type { Feed } from '../directory/feed.ts'
import type { World } from '../domain/context.ts'
import { takeReport } from '../domain/reports.ts'
import type { WorkspaceRow, WorkspaceView } from '../domain/workspaces.ts'
import { bearerOf, createGate, edgeWords, keyWords } from './authenticate.ts'
import { ChangeStreams } from './change-streams.ts'
import { keyChanges, placeOf } from './key-changes.ts'
import type { QuickVerify } from './quick-verify.ts'
import { type Handlers, mountSurface } from './surface.ts'

export interface EdgeOptions {
  world: World
  directory: Directory
  feed: Feed
  /** When streams are to end. */
  closing: AbortSignal
  baseUrl: string | undefined
  describeWorkspace: (row: WorkspaceRow) => WorkspaceView
  quickVerify: QuickVerify
}

interface EdgeCaller {
  actor: { kind: 'edge'; id: string }
  credential: string
  /** Lets in whom the edge passes on, by the key that they presented. */
  admitVisitor: () => MaybeLater<GoodKey>
}

const always = () => true

export function mountEdge(server: FastifyInstance, options: EdgeOptions): void {
  const { world, directory, feed, closing, baseUrl = '', describeWorkspace, quickVerify } = options
  const admitEdge = createGate(directory.verifyEdge, edgeWords)
  const admitKey = createGate(directory.verifyKey, keyWords)
  const streams = new ChangeStreams({
    closing,
    onReplaced: (edge) => server.log.warn({ edge }, 'edge has too many change streams; closed its oldest'),
  })
  const document = describeEdge(baseUrl)
  const describeVerdict = (verdict: GoodKey | Refusal): MaybeLater<Static<typeof verifyKey.answer.schema>> =>
    verdict.valid
      ? whenKnown(directory.getWorkspace(verdict.workspaceId), (row) => ({
          valid: true as const,
          keyId: verdict.keyId,
          workspace: describeWorkspace(row),
        }))
      : { valid: false as const, reason: verdict.reason === 'revoked' ? 'revoked' : 'unknown' }

  const handlers: Handlers<{ anyone: undefined; edge: EdgeCaller }, (typeof edgeOperations)[number]> = {
    'keys.verify': (_caller, { key }) => whenKnown(directory.verifyKey(key), describeVerdict),
    'visitors.authorize': async ({ admitVisitor }) => {
      const { keyId, workspaceId } = await admitVisitor()
      const { slug } = await directory.getWorkspace(workspaceId)
      return { 'x-adit-workspace': slug, 'x-adit-key-id': keyId }
    },
    'keys.changes': ({ actor, credential }, { 'last-event-id': after }) =>
      streams.open(actor.id, (closing) =>
        keyChanges(feed, {
          id: actor.id,
          isStillGood: async () => (await directory.verifyEdge(credential)).valid,
          after: after === undefined ? undefined : placeOf(after),
          closing,
        }),
      ),
    'usage.report': ({ actor }, report) => takeReport(world, directory.findWorkspaceIds, actor.id, report),
    'description.read': () => document,
  }

  mountSurface(server, edgeOperations, handlers, {
    prefix: EDGE_PREFIX,
    baseUrl,
    recall: {
      watches: { 'keys.verify': () => always },
      remember: (_caller, reply) => quickVerify.learn(reply),
    },
    admit(request) {
      const own = request.headers['x-adit-edge'] as string | undefined
      const bearer = bearerOf(request)
      const credential = own ?? bearer
      return whenKnown(admitEdge(request, credential), ({ edgeId }) => ({
        actor: { kind: 'edge' as const, id: edgeId },
        credential: credential as string,
        admitVisitor: () => admitKey(request, own === undefined ? undefined : bearer),
      }))
    },
  })
}

function describeEdge(baseUrl: string) {
  return describe({
    title: 'Adit for edges',
    version: '1',
    description:
      'What the servers that carry tunnels ask of the control plane, and tell it. The operator makes a credential for ' +
      'each edge with `adit admin edge create`; an API key of a workspace does not work here.',
    serverUrl: baseUrl + EDGE_PREFIX,
    operations: edgeOperations,
    credential:
      'The credential of an edge: `Authorization: Bearer adit_edge_…`. Where that header is the visitor’s, send it in ' +
      '`X-Adit-Edge`.',
    crossOrigin: false,
    groups: {
      keys: 'Is this key good, and whose is it?',
      visitors: 'May this visitor pass?',
      usage: 'What went through the tunnels.',
      description: 'This description, for programs.',
    },
  })
}
