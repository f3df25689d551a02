// One-sentence summaries of tool results, for agents and for users who read along.
import type { OutputOf } from '../contract/operation.ts'
import type { ToolOperation } from './tools.ts'

type ToolResult<Id, O = ToolOperation> = O extends ToolOperation & { id: Id } ? OutputOf<O> : never

/** The default limit of list_api_keys: agents read whole results. */
export const KEYS_PER_CALL = 100

type Summary<Id> = (output: ToolResult<Id>, args: { limit?: number }) => string

export const summaries: { [Id in ToolOperation['id']]: Summary<Id> } = {
  'workspace.read': (workspace) => {
    const host =
      'tunnelBase' in workspace
        ? `Its tunnel domain is ${workspace.tunnelBase}.`
        : `A tunnel named my-app would be at ${workspace.exampleUrl}.`
    const state = workspace.provisioned ? 'provisioned' : 'not provisioned yet, so it cannot have tunnels'
    return `The workspace ${quote(workspace.name)} (${workspace.slug}) is ${state}. ${host}`
  },
  'tokens.list': ({ tokens }, { limit = KEYS_PER_CALL }) => {
    const active = tokens.filter(({ revokedAt }) => revokedAt === null).length
    const counts = `API keys listed: ${tokens.length}, active: ${active}.`
    if (tokens.length < limit) return counts
    return `${counts} There may be more: call again with cursor "${tokens.at(-1)?.id}".`
  },
  'tokens.create': ({ id, label }) =>
    `The API key ${id}${label && ` (${quote(label)})`} was created. ` +
    '`token` is the key, shown only once: give it to the user or store it in a secret manager. ' +
    'Do not repeat it elsewhere.',
  'tokens.revoke': ({ id }) => `The API key ${id} was revoked.`,
  'usage.read': ({ series, totalBytes, lastSeen }) =>
    `${totalBytes} bytes in both directions. UTC days, including today: ${series.length}. ` +
    (lastSeen === null ? 'No traffic yet.' : `Last traffic at ${lastSeen}.`),
  'tunnels.list': ({ tunnels, next }) => `Open tunnels listed: ${tunnels.length}.${morePages(next)}`,
  'tunnels.read': ({ name, url, edges, requests }) =>
    `The tunnel ${quote(name)} is open at ${url}, at ${edges.map((edge) => quote(edge.name)).join(' and ')}. ` +
    `Requests so far: ${requests}.`,
  'tunnels.close': ({ id }) => `The tunnel ${id} is closed.`,
  'names.list': ({ names, next }) => {
    const reserved = names.filter((name) => name.reserved).length
    return `Tunnel names listed: ${names.length}, reserved: ${reserved}.${morePages(next)}`
  },
  'edges.list': ({ edges, next }) => {
    const connected = edges.filter(({ isConnected }) => isConnected).length
    return `Edges listed: ${edges.length}, connected: ${connected}.${morePages(next)}`
  },
}

const morePages = (next: string | null) =>
  next === null ? '' : ` There are more: call again with cursor "${next}".`

const quote = (text: string) => `“${text}”`
