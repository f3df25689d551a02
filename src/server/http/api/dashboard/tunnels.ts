// Open tunnels of a workspace, edges and tunnel names.
import { closeTunnel } from '../../../domain/tunnels/close.ts'
import { listForMembers as listEdges } from '../../../domain/tunnels/edges.ts'
import * as names from '../../../domain/tunnels/names.ts'
import { listOpen } from '../../../domain/tunnels/open.ts'
import type { Dependencies, HandlerGroup } from './handlers.ts'

export const tunnelHandlers = ({ enqueue }: Dependencies): HandlerGroup<'tunnels' | 'edges' | 'names'> => ({
  'tunnels.list': (ctx) => listOpen(ctx),
  'tunnels.close': (ctx, { id }) => closeTunnel(ctx, id),
  'edges.list': (ctx) => listEdges(ctx),
  'names.list': (ctx) => names.listNames(ctx),
  'names.reserve': (ctx, { name }) => names.reserve(ctx, name),
  'names.release': (ctx, { name }) => names.release(ctx, name),
  'names.set-access': (ctx, { name, ...access }) =>
    names.setAccess(ctx, name, access, (hash) => enqueue(ctx.browser.address, hash)),
})
