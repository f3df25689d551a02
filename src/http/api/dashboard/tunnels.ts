// Open tunnels of a workspace, edges and tunnel names.
import { listForMembers as listEdges } from '../../../domain/edges.ts'
import * as names from '../../../domain/tunnel-names.ts'
import { closeTunnel, listOpen } from '../../../domain/tunnels.ts'
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
