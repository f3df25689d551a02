// What came of a call in one sentence, for the agent and for people who look over its shoulder.
import type { OutputOf } from '../contract/operation.ts'
import { isActive } from '../credentials/key-state.ts'
import type { ToolOperation } from './tools.ts'

type ResultOf<Id, O = ToolOperation> = O extends ToolOperation & { id: Id } ? OutputOf<O> : never

/** Where a call names no limit: an agent has to read all that it is given. */
export const KEYS_PER_CALL = 100

type Sentence<Id> = (output: ResultOf<Id>, given: { limit?: number }) => string

export const summaries: { [Id in ToolOperation['id']]: Sentence<Id> } = {
  'workspace.read': (workspace) => {
    const host =
      'tunnelBase' in workspace
        ? `Its tunnels live under ${workspace.tunnelBase}.`
        : `A tunnel called my-app would be ${workspace.exampleUrl}.`
    const carried = workspace.provisioned ? 'provisioned' : 'not provisioned yet, so no tunnels are carried'
    return `The workspace ${quoted(workspace.name)} (${workspace.slug}) is ${carried}. ${host}`
  },
  'tokens.list': ({ tokens }, { limit = KEYS_PER_CALL }) => {
    const active = tokens.filter((token) => isActive(token)).length
    const counted = `API keys in this list: ${tokens.length}, of which active: ${active}.`
    const isWhole = tokens.length < limit
    return isWhole ? counted : `${counted} There may be more: call again with cursor "${tokens.at(-1)?.id}".`
  },
  'tokens.create': ({ id, label }) =>
    `The API key ${id}${label && ` (${quoted(label)})`} is made. \`token\` is the key itself, shown this once: hand it to ` +
    'the user or put it where secrets are kept, and repeat it nowhere else.',
  'tokens.revoke': ({ id }) => `The API key ${id} is revoked for good.`,
  'usage.read': ({ series, totalBytes, lastSeen }) =>
    `${totalBytes} bytes in both directions; UTC days in the window: ${series.length}, today included. ` +
    (lastSeen === null ? 'There was no traffic yet.' : `Traffic was last seen at ${lastSeen}.`),
}

const quoted = (text: string) => `“${text}”`
