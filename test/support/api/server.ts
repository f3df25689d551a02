// The real server, on a real port, in the test's process.
import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { createLog } from '../../../src/lib/log.ts'
import { type Running, startServer } from '../../../src/server/app/start.ts'
import { type Config, readConfig } from '../../../src/server/config/server.ts'
import type { Context, OperatorActor, PasswordHasher, Services } from '../../../src/server/domain/context.ts'
import { createIds } from '../../../src/server/domain/ids.ts'
import { type CreatedKey, createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { createEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { openServices } from '../../../src/server/services.ts'
import type { WorkspaceRow } from '../../../src/server/store/workspaces.ts'
import { atEnd, cleanUpInBackground, type Test } from '../cleanup.ts'
import { createDatabase, createMigratedDatabase, type Engine } from '../databases/create.ts'
import { SECRET } from '../databases/migrated-databases.ts'
import { startRelay } from '../network/relay.ts'

export const operator: OperatorActor = { kind: 'operator', id: 'test' }

export interface TestResponse {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape
  json: any
}

export type Call = (
  method: string,
  path: string,
  /** `json` is the body; a string is sent as it is. */
  init?: RequestInit & { key?: string | null; json?: unknown },
) => Promise<TestResponse>

export interface TestServer extends Running {
  config: Config
  services: Services
  workspace: WorkspaceRow
  /** The operator acts in the workspace. */
  ctx: Context
  key: CreatedKey
  /** Sends a request with the server's key, or with `key`; null sends none. */
  call: Call
  post: (path: string, body: unknown, headers?: Record<string, string>) => Promise<TestResponse>
}

export interface TestServerOptions {
  engine: Engine
  env?: Record<string, string>
  clock?: () => number
  /** scrypt instead of SHA-256, for tests about its cost. */
  hasCostlyPasswords?: boolean
}

/** scrypt takes 100 ms of CPU for each password. */
const cheapPasswords: PasswordHasher = {
  hash: async (password) => createHash('sha256').update(password).digest('hex'),
  verify: async ({ hash, password }) => (await cheapPasswords.hash(password)) === hash,
}

export async function openTestServices(t: Test, engine: Engine, env = {}) {
  const database = await createMigratedDatabase(t, engine)
  const config = readConfig({
    ADIT_PORT: '0',
    ADIT_DATABASE_URL: database,
    ADIT_LOG_LEVEL: 'silent',
    ADIT_SECRET: SECRET,
    ...env,
  })
  const services = await openServices(config, createLog(config.logLevel), 10_000)
  atEnd(t, () => services.store.close())
  return { config, services, database }
}

export async function serve(t: Test, options: TestServerOptions): Promise<TestServer> {
  const { engine, env, clock, hasCostlyPasswords } = options
  const { config, services: opened } = await openTestServices(t, engine, env)
  const services = {
    ...opened,
    ...(clock && { clock, ids: createIds(clock, opened.random) }),
    ...(!hasCostlyPasswords && { passwordHasher: cheapPasswords }),
  }
  const running = await startServer(config, services, createLog(config.logLevel))
  atEnd(t, running.stop)
  cleanUpInBackground(t)
  const workspace = await createWorkspace(services, operator, {
    slug: 'acme',
    name: 'Acme',
    provisioned: true,
  })
  const ctx = { ...services, actor: operator, workspaceId: workspace.id }
  const key = await createKey(ctx, { label: 'first' })
  const call = caller(`${running.url}/api/v1`, key.token)
  return {
    ...running,
    config,
    services,
    workspace,
    ctx,
    key,
    call,
    post: (path, json, headers = {}) => call('POST', path, { json, headers }),
  }
}

/** Starts another node on the database of the server. */
export async function addNode(t: Test, { config }: TestServer, clock = Date.now): Promise<Running> {
  const log = createLog(config.logLevel)
  const services = await openServices(config, log, 10_000)
  const node = await startServer(config, { ...services, clock }, log)
  atEnd(t, node.stop)
  return node
}

/** On PostgreSQL, with a relay in between to interrupt the connection. */
export async function serveThroughRelay(t: Test) {
  const database = await createDatabase(t, 'postgres')
  const relay = await startRelay(t, database)
  const through = new URL(database)
  through.host = new URL(relay.url).host
  const server = await serve(t, { engine: 'postgres', env: { ADIT_DATABASE_URL: through.href } })
  return { server, relay, database }
}

export function caller(base: string, defaultKey: string): Call {
  return async (method, path, { key = defaultKey, json, headers, ...init } = {}) => {
    const response = await fetch(base + path, {
      method,
      redirect: 'manual',
      ...init,
      ...(json !== undefined && { body: toJson(json) }),
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...(headers as Record<string, string>),
      },
    })
    return readResponse(response)
  }
}

export const toJson = (body: unknown) => (typeof body === 'string' ? body : JSON.stringify(body))

export async function readResponse(response: Response): Promise<TestResponse> {
  const { status, headers } = response
  const text = await response.text()
  const isJson = headers.get('content-type')?.startsWith('application/json')
  return { status, headers, text, json: isJson && text !== '' ? JSON.parse(text) : undefined }
}

/** Adds a workspace with a key. */
export async function addWorkspace(server: TestServer, slug: string) {
  const workspace = await createWorkspace(server.services, operator, { slug })
  const ctx = { ...server.ctx, workspaceId: workspace.id }
  const key = await createKey(ctx, { label: `of ${slug}` })
  await recordVerified(server)
  return { workspace, ctx, key }
}

/** An edge presents a valid key. */
export async function presentKey(url: string, edgeToken: string, key: string): Promise<void> {
  const { json } = await caller(`${url}/edge/v1`, edgeToken)('POST', '/keys/verify', { json: { key } })
  if (!json?.valid) throw new Error(`the key is not valid: ${JSON.stringify(json)}`)
}

/** As if each edge had verified a key of each workspace. */
export const recordVerified = ({ services: { store } }: Pick<TestServer, 'services'>) =>
  store.transaction((tx) =>
    sql`insert into edge_workspaces (edge_id, workspace_id, verified_at)
      select edges.id, workspaces.id, 1 from edges cross join workspaces where true
      on conflict do nothing`.execute(tx),
  )

/**
 * Adds an edge that has verified a key of each workspace, with functions for its requests to this server or
 * to the node at `url`.
 */
export async function addEdge(server: TestServer, name = 'fra-1', url = server.url, group?: string) {
  const edge = await createEdge(server.services, operator, name, { group })
  await recordVerified(server)
  const call = caller(`${url}/edge/v1`, edge.token)
  const post = (path: string, json: unknown) => call('POST', path, { json })
  return {
    ...edge,
    call,
    post,
    verify: (key: string) => post('/keys/verify', { key }),
    report: (report: unknown) => post('/usage', report),
  }
}

export async function serveWithEdge(t: Test, options: TestServerOptions) {
  const server = await serve(t, options)
  return { server, edge: await addEdge(server) }
}

/** The value of ADIT_DATABASE_URL. */
export const databaseUrl = ({ config: { database } }: Pick<TestServer, 'config'>): string =>
  database.engine === 'sqlite' ? `sqlite:${database.path}` : database.url

/** Renames a table, so that queries on it fail unexpectedly; or renames it back. */
export const rename = (server: TestServer, from: string, to: string) =>
  server.services.store.transaction((db) => db.schema.alterTable(from).renameTo(to).execute())
