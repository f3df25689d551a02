// Open tunnels of a workspace, edges and tunnel names.
import { startClosing } from '../../../domain/tunnels/close.ts'
import { listForWorkspace } from '../../../domain/tunnels/edges.ts'
import * as names from '../../../domain/tunnels/names.ts'
import { listOpen } from '../../../domain/tunnels/open.ts'
import type { Dependencies, HandlerGroup } from './handlers.ts'

/** The dashboard searches and sorts whole lists. */
const WHOLE_LIST = { limit: 1_000 }

export const tunnelHandlers = ({ enqueue }: Dependencies): HandlerGroup<'tunnels' | 'edges' | 'names'> => ({
  'tunnels.list': (ctx) => listOpen(ctx, WHOLE_LIST),
  'tunnels.close': (ctx, { id }) => startClosing(ctx, id),
  'edges.list': (ctx) => listForWorkspace(ctx, WHOLE_LIST),
  'names.list': (ctx) => names.listNames(ctx, WHOLE_LIST),
  'names.reserve': (ctx, { name }) => names.reserve(ctx, name),
  'names.release': (ctx, { name }) => names.release(ctx, name),
  'names.set-access': (ctx, { name, ...access }) =>
    names.setAccess(ctx, name, access, (hash) => enqueue(ctx.browser.address, hash)),
})
