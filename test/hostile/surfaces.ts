// Every surface that an attacker can reach, and random requests to it: the operations of the contract with
// sampled input, and the other paths with arbitrary input.
import { Buffer } from 'node:buffer'
import { type Api, apis } from '../../src/contract/apis.ts'
import { type Access, FORM_TYPE, type Operation } from '../../src/contract/operation.ts'
import type { Random } from '../support/random.ts'
import type { Deployment } from './deployment.ts'
import type { RequestParts } from './requests.ts'
import { json, sample, text } from './values.ts'

export interface Surface {
  name: string
  port: number
  /** How often it is chosen. */
  weight: number
  request(random: Random): RequestParts
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']
const BODY_BYTES_MAX = 60_000

export function surfacesOf({ plane, edge, tunnel, credentials }: Deployment): Surface[] {
  const planePort = Number(new URL(plane.url).port)
  const origin = plane.url
  const host: [string, string] = ['Host', new URL(plane.url).host]
  const bearer =
    (secret: string) =>
    (random: Random): [string, string][] =>
      random.chance(0.15) ? [] : [['Authorization', `Bearer ${random.chance(0.9) ? secret : text(random)}`]]
  const session = (random: Random): [string, string][] => [
    ...(random.chance(0.8) ? ([['Cookie', credentials.cookie]] as [string, string][]) : []),
    ...(random.chance(0.9) ? ([['Origin', origin]] as [string, string][]) : []),
  ]
  const byAccess: Partial<Record<Access, HeadersFactory>> = {
    anyone: () => [],
    device: () => [],
    key: bearer(credentials.key),
    edge: bearer(credentials.edge),
  }
  const plain = (random: Random): [string, string][] =>
    random.chance(0.1) ? [['Authorization', `Bearer ${credentials.key}`]] : []

  const onPlane = (name: string, weight: number, request: Surface['request']): Surface => ({
    name,
    weight,
    port: planePort,
    request: (random) => {
      const parts = request(random)
      return { ...parts, headers: random.shuffled([host, ...parts.headers]) }
    },
  })
  const onEdge = (name: string, weight: number, hostName: string, request: Surface['request']): Surface => ({
    name,
    weight,
    port: edge.port,
    request: (random) => {
      const parts = request(random)
      const named: [string, string] = ['Host', random.chance(0.95) ? hostName : text(random)]
      return { ...parts, headers: [named, ...parts.headers] }
    },
  })
  return [
    // Only one variant of the public API is served.
    ...Object.values<Api>(apis)
      .filter((api) => api !== apis.publicB)
      .map((api) =>
        onPlane(
          `${api.name} API`,
          3,
          operations(api, (access) => byAccess[access] ?? session),
        ),
      ),
    onPlane(
      'frp',
      1,
      posted(
        () => `/edge/frp/${credentials.edge}`,
        frpMessage(credentials.key),
        () => [],
      ),
    ),
    onPlane(
      'sish',
      1,
      posted(
        () => `/edge/sish/${credentials.edge}`,
        sishMessage(credentials.key),
        () => [],
      ),
    ),
    onPlane(
      'MCP',
      1,
      posted(
        () => '/mcp',
        mcpMessage,
        (random) => mcpHeaders(random, bearer(credentials.key)(random)),
      ),
    ),
    onPlane(
      'pages',
      1,
      paths(['/', '/sign-in', '/w/acme', '/docs', '/assets/x.js', '/healthz', '/readyz'], plain),
    ),
    onEdge('tunnel', 4, tunnel.host, paths(['/', '/a?b=c', '/early', '/bytes/1000', '/bytes/90000'], plain)),
    onEdge('edge control', 2, `127.0.0.1:${edge.port}`, controlPaths(credentials.key)),
  ]
}

type HeadersFactory = (random: Random) => [string, string][]

/**
 * Not streams, which do not end; not sign-out, changes of the account and leaving, which end the shared
 * session or change its user; and not archiving, which closes the tunnel. Other tests cover them.
 */
const isUsable = ({ response, id }: Operation) =>
  !response.stream && !/^(session\.end|account\.|members\.leave|settings\.archive)/.test(id)

function operations(api: Api, headersFor: (access: Access) => HeadersFactory) {
  const usable = api.operations.filter(isUsable)
  return (random: Random): RequestParts => {
    const { method, path, access, params, query, body, oauth } = random.pick(usable)
    const form = oauth === 'form' || undefined
    const known = sample(params ?? {}, random) as Record<string, unknown> | null
    const filled = path.replace(/\{(\w+)\}/g, (_, name) =>
      name === 'slug' && random.chance(0.8) ? 'acme' : inPath(known?.[name] ?? text(random)),
    )
    return {
      method: random.chance(0.95) ? method : random.pick(METHODS),
      target: `${api.prefix}${filled}${search(query, random)}`,
      headers: [...headersFor(access)(random), ...(body ? typed(random, form && FORM_TYPE) : [])],
      body: body || random.chance(0.05) ? bytes(sample(body ?? {}, random), random, form) : undefined,
    }
  }
}

const posted =
  (target: () => string, message: (random: Random) => unknown, headersFor: HeadersFactory) =>
  (random: Random): RequestParts => ({
    method: random.chance(0.95) ? 'POST' : random.pick(METHODS),
    target: target(),
    headers: [...headersFor(random), ...typed(random)],
    body: bytes(message(random), random),
  })

const paths =
  (known: string[], headersFor: HeadersFactory) =>
  (random: Random): RequestParts => ({
    method: random.chance(0.7) ? 'GET' : random.pick(METHODS),
    target: random.chance(0.8) ? random.pick(known) : `/${inPath(text(random))}`,
    headers: headersFor(random),
    body: random.chance(0.2) ? bytes(json(random), random) : undefined,
  })

const controlPaths =
  (key: string) =>
  (random: Random): RequestParts => ({
    method: random.pick(['POST', 'DELETE', 'GET', 'OPTIONS']),
    target: random.pick(['/.adit/connect', '/.adit/health', '/.adit/']),
    headers: [
      ['Authorization', random.pick(['Basic eDp5', `Bearer ${text(random)}`, `Bearer ${key.slice(0, -1)}`])],
    ],
    body: random.chance(0.5) ? bytes(json(random), random) : undefined,
  })

const typed = (random: Random, type = 'application/json'): [string, string][] => [
  ['Content-Type', random.chance(0.9) ? type : random.pick(['text/plain', ';', 'application/json;', 'a/b'])],
]

const MCP_VERSION = '2026-07-28'
const mcpMethods = [
  'initialize',
  'tools/list',
  'tools/call',
  'ping',
  'server/discover',
  'subscriptions/listen',
]

/**
 * Requests of the latest revision need version, method and name in headers; earlier ones have none of these.
 */
const mcpHeaders = (random: Random, headers: [string, string][]): [string, string][] => [
  ...headers,
  ['Accept', 'application/json, text/event-stream'],
  ...(random.chance(0.5)
    ? ([
        ['MCP-Protocol-Version', MCP_VERSION],
        ['Mcp-Method', random.pick(mcpMethods)],
        ['Mcp-Name', random.pick(['list_api_keys', 'get_usage'])],
      ] as [string, string][])
    : []),
]

function mcpMessage(random: Random): unknown {
  const method = random.pick([...mcpMethods, text(random)])
  const params = random.chance(0.5)
    ? { name: random.pick(['list_api_keys', 'get_usage', text(random)]), arguments: json(random) }
    : json(random)
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': random.chance(0.9) ? MCP_VERSION : json(random),
    'io.modelcontextprotocol/clientCapabilities': random.chance(0.9) ? {} : json(random),
  }
  const message = { jsonrpc: '2.0', id: random.pick([1, 'x', null]), method }
  return random.chance(0.5) ? { ...message, params } : { ...message, params: { ...Object(params), _meta } }
}

const frpMessage =
  (key: string) =>
  (random: Random): unknown => ({
    version: '0.1.0',
    op: random.pick(['Login', 'NewProxy', 'Ping', 'NewWorkConn', 'NewUserConn', 'CloseProxy', text(random)]),
    content: {
      user: random.chance(0.7) ? { metas: { token: random.chance(0.8) ? key : text(random) } } : json(random),
      metas: { token: key },
      proxy_type: random.pick(['http', 'tcp', text(random)]),
      subdomain: text(random),
      custom_domains: json(random),
    },
  })

const sishMessage =
  (key: string) =>
  (random: Random): unknown => ({
    password: random.chance(0.8) ? key : text(random),
    user: random.chance(0.5) ? 'acme' : text(random),
    remote_addr: random.chance(0.5) ? json(random) : '127.0.0.1:1',
  })

const asForm = (value: unknown) =>
  Object.entries((value as object | null) ?? {})
    .map((pair) => pair.map(inPath).join('='))
    .join('&')

/** JSON or a form of the value; at times cut, wrapped deeply, or padded past every limit. */
function bytes(value: unknown, random: Random, form?: true): Buffer {
  const whole = form ? asForm(value) : (JSON.stringify(value) ?? '')
  if (random.chance(0.9)) return Buffer.from(whole)
  return random.pick([
    () => Buffer.from(whole.slice(0, random.whole(0, whole.length + 1))),
    () => Buffer.from('['.repeat(random.whole(1, BODY_BYTES_MAX))),
    () => Buffer.from(`{"x":"${'y'.repeat(random.whole(1, BODY_BYTES_MAX))}"}`),
    () => Buffer.from(`[${'1,'.repeat(random.whole(1, BODY_BYTES_MAX / 2))}1]`),
    () => Buffer.from(text(random), 'utf16le'),
  ])()
}

const inPath = (value: unknown) => encodeURIComponent(String(value).toWellFormed()).slice(0, 2_000)

function search(query: Operation['query'], random: Random): string {
  if (!query && random.chance(0.8)) return ''
  const members = Object.entries((sample(query ?? {}, random) as Record<string, unknown>) ?? {})
  const pairs = random.chance(0.2) ? [...members, [text(random), text(random)]] : members
  return `?${pairs.map(([name, value]) => `${inPath(name)}=${inPath(value)}`).join('&')}`
}
