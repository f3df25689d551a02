// A workspace as its members see it: its keys, usage and audit log.

import { readAudit } from '../../../domain/audit/entries.ts'
import { exportWorkspaceAudit } from '../../../domain/audit/export-workspace.ts'
import * as keys from '../../../domain/keys/lifecycle.ts'
import { listForMembers } from '../../../domain/keys/list.ts'
import { changePolicy } from '../../../domain/keys/policy.ts'
import * as requests from '../../../domain/keys/requests.ts'
import { rotate } from '../../../domain/keys/rotation.ts'
import { findActiveEdgeName, findEdgeUrl } from '../../../domain/tunnels/edges.ts'
import { readUsage } from '../../../domain/usage/read.ts'
import { archiveAsOwner } from '../../../domain/workspaces/archive.ts'
import { readWorkspace } from '../../../domain/workspaces/manage.ts'
import { listNotices } from '../../../domain/workspaces/notices.ts'
import { readQuotas } from '../../../domain/workspaces/quotas.ts'
import * as settings from '../../../domain/workspaces/settings.ts'
import { LongLists } from '../../operations/long-lists.ts'
import type { Dependencies, HandlerGroup } from './handlers.ts'

const exports = new LongLists('Too many exports are running at the same time. Try again shortly.')

export const workspaceHandlers = ({
  services,
  variant,
}: Dependencies): HandlerGroup<
  'workspace' | 'workspaces' | 'settings' | 'keys' | 'key-requests' | 'notices' | 'usage' | 'quotas' | 'audit'
> => ({
  'workspace.read': async (ctx) => ({
    ...(await readWorkspace(ctx)),
    role: ctx.role,
    edgeName: await findActiveEdgeName(ctx),
    edgeUrl: await findEdgeUrl(ctx),
    keysCanManageKeys: variant === 'A',
  }),
  'keys.list': (ctx, page) => listForMembers(ctx, page),
  'keys.create': (ctx, { workspace: _, ...key }) => keys.createKey(ctx, key),
  'keys.revoke': (ctx, { id }) => keys.revoke(ctx, id),
  'keys.rotate': (ctx, { id, overlap }) => rotate(ctx, id, overlap),
  'key-requests.list': (ctx) => requests.listRequests(ctx),
  'key-requests.create': (ctx, { label }) => requests.requestKey(ctx, label),
  'key-requests.approve': (ctx, { id }) => requests.decideRequest(ctx, id, 'approved'),
  'key-requests.decline': (ctx, { id }) => requests.decideRequest(ctx, id, 'declined'),
  'key-requests.withdraw': (ctx, { id }) => requests.withdrawRequest(ctx, id),
  'key-requests.pick-up': (ctx, { id }) => requests.pickUpKey(ctx, id),
  'notices.list': (ctx) => listNotices(ctx),
  'usage.read': (ctx, { days }) => readUsage(ctx, days),
  'quotas.read': (ctx) => readQuotas(ctx),
  'workspaces.create': ({ actor }, input) => settings.createAsUser(services, actor, input),
  'settings.rename': (ctx, { name }) => settings.rename(ctx, name),
  'settings.policy': (ctx, { workspace: _, ...changes }) => changePolicy(ctx, changes),
  'settings.archive': (ctx, { workspace, confirm }) => archiveAsOwner(ctx, workspace, confirm),
  'audit.list': (ctx, page) => readAudit(ctx, page),
  'audit.export': (ctx, { workspace: _, ...input }) => {
    const { type, name, chunks, authorize } = exportWorkspaceAudit(ctx, input)
    return { type, name, chunks: exports.open(ctx.workspaceId, chunks, authorize) }
  },
})
