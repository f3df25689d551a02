// Every way to create a key, by the operation or command of each surface that does it.

import { commands } from '../../../src/cli/commands.ts'
import { type Api, apis } from '../../../src/contract/apis.ts'
import type { Operation } from '../../../src/contract/operation.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { type Agent, connectAgent } from '../../mcp/agent.ts'
import { approveRequest, CALLBACK, createRequest, exchange, registerClient } from '../accounts/agents.ts'
import { poll, startDevice } from '../accounts/devices.ts'
import { addMember } from '../accounts/users.ts'
import { databaseUrl, serve, type TestServer } from '../api/server.ts'
import type { Test } from '../cleanup.ts'
import { run } from '../processes/process.ts'
import type { Engine } from './create.ts'

/** An operation by the names of the ways to call it: that of its API, and the tool if there is one. */
const listNames = ({ name }: Api, { id, tool }: Operation) => [
  `${name} ${id}`,
  ...(tool ? [`MCP ${tool.name}`] : []),
]

const operationsBy = (matches: (operation: Operation) => boolean) =>
  Object.values<Api>(apis).flatMap((api) =>
    api.operations.filter(matches).flatMap((operation) => listNames(api, operation)),
  )

const commandNames = commands.map(({ name }) => `command ${name}`)

/** All operations, tools and commands. */
export const allWays = new Set([...operationsBy(() => true), ...commandNames])

/** Operations and tools create keys if they say so in their audit actions; of commands it is not known. */
export const maybeCreatingKeys = new Set([
  ...operationsBy(({ audit = [] }) => !('none' in audit) && audit.includes('key.created')),
  ...commandNames,
])

export async function setUpKeyCreation(t: Test, engine: Engine) {
  const clock = { now: Date.now() }
  const server = await serve(t, { engine, clock: () => clock.now })
  const { url, key } = server
  return {
    server,
    admin: await addMember(server, 'Adam', 'admin'),
    agent: await connectAgent(t, 'http', { url, apiKey: key.token }),
    adit: async (args: string[]) => {
      const env = { ADIT_DATABASE_URL: databaseUrl(server), ADIT_URL: url, ADIT_API_KEY: key.token }
      const { code, stdout, stderr } = await run(t, args, env)
      return { isAccepted: code === 0, text: stdout + stderr }
    },
    /** After the interval between two polls. */
    pollLater: (deviceCode: string) => {
      clock.now += 5_000
      return poll(url, deviceCode)
    },
  }
}

export type Deployment = Awaited<ReturnType<typeof setUpKeyCreation>>

export interface NewKey {
  label: string
  /** The life that is asked for; undefined if none is. */
  days?: number | undefined
  /** The operator overrides the policy. */
  force?: boolean | undefined
}

interface Outcome {
  isAccepted: boolean
  text: string
}

export interface Way {
  actor: 'key' | 'user' | 'operator'
  /** Whether a life can be asked for, or is that of an earlier key. */
  life: 'none' | 'asked' | 'inherited'
  /** What precedes it while the policy allows everything. Returns the attempt. */
  prepare(deployment: Deployment, key: NewKey): Promise<() => Promise<Outcome>>
}

const outcome = ({ status, text }: { status: number; text: string }): Outcome => ({
  isAccepted: status < 300,
  text,
})

const expiryIn = (days: number | undefined) =>
  days === undefined ? {} : { expiresAt: new Date(Date.now() + days * DAY_MS).toISOString() }

/** A key that exists before, for rotations. */
const addEarlierKey = ({ ctx }: TestServer, { label, days }: NewKey) =>
  createKey(ctx, { label, ...expiryIn(days) })

const forced = ({ force }: NewKey) => (force ? ['--force'] : [])

const called = (agent: Agent, name: string, args: Record<string, unknown>) => async () => {
  const { failed, text } = await agent.call(name, args)
  return { isAccepted: !failed, text }
}

/** The operations and commands that create keys. For some, another one is the way that they use. */
export const ways: Record<string, Way | { uses: string }> = {
  'api tokens.create': {
    actor: 'key',
    life: 'none',
    prepare:
      async ({ server }, { label }) =>
      async () =>
        outcome(await server.post('/tokens', { label })),
  },
  'MCP create_api_key': {
    actor: 'key',
    life: 'none',
    prepare: async ({ agent }, { label }) => called(agent, 'create_api_key', { label }),
  },
  'command keys create': {
    actor: 'key',
    life: 'none',
    prepare:
      async ({ adit }, { label }) =>
      () =>
        adit(['keys', 'create', '--label', label]),
  },
  'dashboard keys.create': {
    actor: 'user',
    life: 'asked',
    prepare:
      async ({ admin }, { label, days }) =>
      async () =>
        outcome(await admin.post('/workspaces/acme/keys', { label, ...expiryIn(days) })),
  },
  'dashboard keys.rotate': {
    actor: 'user',
    life: 'inherited',
    prepare: async ({ admin, server }, key) => {
      const { id } = await addEarlierKey(server, key)
      return async () => outcome(await admin.post(`/workspaces/acme/keys/${id}/rotate`, { overlap: '7d' }))
    },
  },
  'dashboard devices.approve': {
    actor: 'user',
    life: 'asked',
    prepare: async ({ admin, server, pollLater }, { label, days }) => {
      const { deviceCode, userCode } = await startDevice(server.url, label)
      return async () => {
        const body = { code: userCode, ...expiryIn(days) }
        const approved = await admin.post('/workspaces/acme/devices', body)
        await pollLater(deviceCode)
        return outcome(approved)
      }
    },
  },
  'device device.token': {
    actor: 'user',
    life: 'asked',
    prepare: async ({ admin, server, pollLater }, { label, days }) => {
      const { deviceCode, userCode } = await startDevice(server.url, label)
      await admin.post('/workspaces/acme/devices', { code: userCode, ...expiryIn(days) })
      return async () => outcome(await pollLater(deviceCode))
    },
  },
  'oauth oauth.token': {
    actor: 'user',
    life: 'none',
    prepare: async ({ admin, server: { url } }, { label }) => {
      const request = createRequest(url, await registerClient(url, CALLBACK, label))
      const { form } = await approveRequest(admin, request)
      return async () => outcome(await exchange(url, form))
    },
  },
  'command admin key create': {
    actor: 'operator',
    life: 'asked',
    prepare: async ({ adit }, key) => {
      const expires = key.days === undefined ? [] : ['--expires', `${key.days}d`]
      const words = ['admin', 'key', 'create', '--workspace', 'acme', '--label', key.label]
      return () => adit([...words, ...expires, ...forced(key)])
    },
  },
  'command admin key rotate': {
    actor: 'operator',
    life: 'inherited',
    prepare: async ({ adit, server }, key) => {
      const { id } = await addEarlierKey(server, key)
      return () => adit(['admin', 'key', 'rotate', id, '--overlap', '7d', ...forced(key)])
    },
  },
  'command login': { uses: 'device device.token' },
  'command mcp': { uses: 'MCP create_api_key' },
}
