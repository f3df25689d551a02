// Scenarios: a server under one kind of request.
import { request } from 'node:http'
import type { Fixtures } from './fixtures.ts'
import type { Job, RequestSpec } from './load/jobs.ts'
import type { Served } from './processes.ts'
import { roundLimit, type Scenario } from './rounds.ts'
import * as plans from './seed/plan.ts'

export const CONNECTIONS = 32
/** Edges that report concurrently. */
const REPORTERS = plans.REPORTED_DAYS
/** Keys presented by a figure. Each is verified once before the rounds, so that it is cached. */
const PRESENTED = 20_000

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Workspace 1's own key. */
export const ownKey = (fixtures: Fixtures) => fixtures.keys().keys[0] as string

export const getRequest = (path: string, token: string): RequestSpec => ({
  method: 'GET',
  path,
  headers: bearer(token),
})

/** Repeats one request; every response must equal the first. */
export async function repeatGet(fixtures: Fixtures, served: Served, spec: RequestSpec): Promise<Scenario> {
  const { body } = await requestOnce(served.url, spec)
  return async (round) => {
    const loaded = await fixtures.load.run(
      {
        url: served.url,
        connections: CONNECTIONS,
        draw: { kind: 'requests', requests: [spec], each: 'all' },
        until: roundLimit(round),
        bodyPrefix: body,
      },
      served.pid,
    )
    return { value: loaded.perSecond, busy: loaded.busy }
  }
}

interface Verifying {
  path: string
  headers: Record<string, string>
  /** Number of different keys. */
  keys: number
}

export const edgeVerifying = (fixtures: Fixtures, keys: number): Verifying => ({
  path: '/edge/v1/keys/verify',
  headers: bearer(fixtures.keys().edge.token),
  keys: Math.min(keys, PRESENTED),
})

/** The verification of one key. */
export const verifyRequest = (fixtures: Fixtures, { path, headers }: Verifying): RequestSpec => ({
  method: 'POST',
  path,
  headers,
  body: JSON.stringify({ key: ownKey(fixtures) }),
})

function verifyJob(fixtures: Fixtures, served: Served, { path, headers, keys }: Verifying, from = 0): Job {
  const { file } = fixtures.keys()
  return {
    url: served.url,
    connections: CONNECTIONS,
    draw: { kind: 'keys', file, lines: keys, from, count: PRESENTED, path, headers },
    until: roundLimit(0),
    bodyPrefix: '{"valid":true',
  }
}

/** Each round starts with different keys. */
export function verifyKeys(fixtures: Fixtures, served: Served, what: Verifying): Scenario {
  let from = 0
  return async (round) => {
    const job = verifyJob(fixtures, served, what, from)
    from = (from + PRESENTED / 5) % what.keys
    const loaded = await fixtures.load.run({ ...job, until: roundLimit(round) }, served.pid)
    return { value: loaded.perSecond, busy: loaded.busy }
  }
}

/** Verifies each key once. */
export async function verifyEach(fixtures: Fixtures, served: Served, what: Verifying) {
  const job = verifyJob(fixtures, served, what)
  return fixtures.load.run({ ...job, until: { amount: what.keys } }, served.pid)
}

/** A usage report: a thousand counters, whose values grow with each report. */
export const usageReport = (day: number, workspaces = plans.REPORTED): string => {
  const date = new Date(day).toISOString()
  const counters = Array.from(
    { length: workspaces.count },
    (_, index) =>
      `{"workspace":"${plans.workspaceSlug(workspaces.from + index)}","day":"${date.slice(0, 10)}","requests":{n},` +
      `"bytesIn":{n}4821,"bytesOut":{n}9377,"events":{n},"lastSeen":"${date}"}`,
  )
  return `{"epoch":"bench-${date.slice(0, 10)}","counters":[${counters.join(',')}]}`
}

/**
 * Four reporters concurrently, each of a different day; the value is counters per second. The first reports,
 * which insert the rows, are sent before the rounds.
 */
export async function reporting(fixtures: Fixtures, served: Served): Promise<Scenario> {
  const headers = bearer(fixtures.keys().edge.token)
  const requests = plans.reportedDays().map(
    (day): RequestSpec => ({
      method: 'POST',
      path: '/edge/v1/usage',
      headers,
      body: usageReport(day),
    }),
  )
  for (const { body = '', ...spec } of requests)
    await requestOnce(served.url, { ...spec, body: body.replaceAll('{n}', '1') })
  return async (round) => {
    const loaded = await fixtures.load.run(
      {
        url: served.url,
        connections: REPORTERS,
        draw: { kind: 'requests', requests, each: 'one' },
        until: roundLimit(round),
        bodyPrefix: `{"accepted":${plans.REPORTED.count},"rejected":[]}`,
      },
      served.pid,
    )
    return { value: loaded.perSecond * plans.REPORTED.count, busy: loaded.busy }
  }
}

interface BenchResponse {
  status: number
  rawHeaders: string[]
  body: string
}

export const requestOnce = (
  url: string,
  { method, path, headers, body }: RequestSpec,
): Promise<BenchResponse> =>
  new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const sent = request(url + path, { method, headers: { ...headers, ...type } }, async (response) => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk)
      const received = {
        status: response.statusCode as number,
        rawHeaders: response.rawHeaders,
        body: Buffer.concat(chunks).toString(),
      }
      if (received.status >= 300) reject(new Error(`${method} ${path}: ${received.status} ${received.body}`))
      else resolve(received)
    })
    sent.once('error', reject)
    sent.end(body)
  })
