// The attack: requests and broken connections from one seed, over concurrent connections.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { fetchHost } from '../support/edges/tunnels.ts'
import { breakConnections, openingsFor, randomCuts } from '../support/network/broken-connections.ts'
import { createRandom, type Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { type Deployment, deploy } from './deployment.ts'
import { exchange } from './exchange.ts'
import { watchProcess } from './process-watch.ts'
import { corrupt, encode, type RawRequest } from './requests.ts'
import { type Surface, surfacesOf } from './surfaces.ts'

const PROGRESS_MS = 30_000
const CONCURRENT_CONNECTIONS = 16
const REQUESTS_PER_CONNECTION_MAX = 12
/** A server waits up to 15 s for the rest of a request. */
const QUIET_WITHIN_MS = 60_000
const DESCRIPTORS_SPARE = 10
/** Allows for garbage; a leak of 1 KiB per request exceeds it in a long run. */
const RSS_SPARE_MB = 120

interface AttackOptions {
  seed: string
  requests: number
  brokenConnections: number
  secondsMax: number
}

export async function attack(t: TestContext, options: AttackOptions): Promise<void> {
  const { seed, requests, brokenConnections, secondsMax } = options
  t.diagnostic(`HOSTILE_SEED=${seed}`)
  const deployment = await deploy(t)
  const watched = [
    watchProcess('control plane', deployment.plane),
    watchProcess('edge', deployment.edge),
    watchProcess('tunnel client', deployment.tunnel),
  ]
  const surfaces = surfacesOf(deployment)
  const random = createRandom(seed)
  const began = performance.now()
  const totals = { requests: 0, broken: 0, statuses: new Map<string, number>(), violations: [] as string[] }
  const isOver = () => performance.now() - began > secondsMax * 1_000 || totals.violations.length >= 5

  async function sendAll(lane: Random, requestsMax: number): Promise<void> {
    while (totals.requests < requestsMax && !isOver()) await sendRequests(lane)
  }

  /** Half of them on each listener. */
  async function breakAll(count: number, name: string): Promise<void> {
    const broken = openingsOf(deployment).map(async ({ port, openings }) => {
      const cuts = randomCuts(openings, { seed: `${seed} ${name} ${port}`, count: count / 2 })
      const made = await breakConnections(port, cuts, isOver)
      totals.broken += made
    })
    await Promise.all(broken)
  }

  async function sendRequests(lane: Random): Promise<void> {
    const surface = weighted(surfaces, lane)
    const sent = requestsTo(surface, lane)
    totals.requests += sent.length
    const { responses, violation } = await exchange(surface.port, sent, lane)
    for (const { status } of responses) {
      const name = `${surface.name} ${status}`
      totals.statuses.set(name, (totals.statuses.get(name) ?? 0) + 1)
    }
    const failed = responses.find(({ status }) => !isAllowed(surface, status, deployment))
    const wrong = violation ?? (failed && `${failed.status}: ${failed.body.slice(0, 300)}`)
    if (wrong !== undefined) totals.violations.push(describe(surface, wrong, sent))
  }

  const run = (name: string, requestsMax: number, brokenCount: number) =>
    Promise.all([
      breakAll(brokenCount, name),
      ...Array.from({ length: CONCURRENT_CONNECTIONS }, (_, lane) =>
        sendAll(random.fork(`${name} ${lane}`), requestsMax),
      ),
    ])

  // Warm-up: code that is loaded on first use is loaded before the measurement.
  await run('warm-up', requests * 0.2, brokenConnections * 0.2)
  await settled(watched)
  const before = watched.map(({ usage }) => usage())
  const progress = setInterval(
    () => process.stdout.write(`${totals.requests} requests, ${totals.broken} broken connections\n`),
    PROGRESS_MS,
  )
  t.after(() => clearInterval(progress))
  await run('attack', requests, brokenConnections * 0.8)
  await settled(watched)

  const seconds = Math.round((performance.now() - began) / 1_000)
  t.diagnostic(`${totals.requests} requests and ${totals.broken} broken connections in ${seconds} s`)
  t.diagnostic(
    [...totals.statuses]
      .sort()
      .map(([name, count]) => `${name}: ${count}`)
      .join(', '),
  )
  assert.deepEqual(totals.violations, [])
  for (const [index, one] of watched.entries()) {
    assert.ok(one.isAlive(), `the ${one.name} exited`)
    assert.deepEqual(one.errors(), [], `log of the ${one.name}`)
    const [was, is] = [before[index], one.usage()]
    if (!was || !is) continue
    const descriptors = `${was.descriptors} → ${is.descriptors} descriptors`
    const change = `${one.name}: ${descriptors}, ${was.rssMb} → ${is.rssMb} MiB`
    t.diagnostic(change)
    assert.ok(is.descriptors <= was.descriptors + DESCRIPTORS_SPARE, change)
    assert.ok(is.rssMb <= was.rssMb + RSS_SPARE_MB, change)
  }
  assert.ok(
    totals.requests >= requests && totals.broken >= brokenConnections,
    `not done within ${secondsMax} s`,
  )
  await assertServed(deployment)
}

function openingsOf({ plane, edge, tunnel, credentials }: Deployment) {
  const authorized = (secret: string) => `Authorization: Bearer ${secret}\r\n`
  const api = { get: '/api/v1/workspace', post: '/api/v1/tokens', body: '{"label":"a"}' }
  const stream = { get: '/edge/v1/key-changes', post: '/edge/v1/keys/verify', body: '{"key":"x"}' }
  const control = { get: '/.adit/connect', post: '/.adit/connect', body: '{}' }
  return [
    {
      port: Number(new URL(plane.url).port),
      openings: [
        ...openingsFor({ host: 'adit', headers: authorized(credentials.key), ...api }),
        ...openingsFor({ host: 'adit', headers: authorized(credentials.edge), ...stream }),
      ],
    },
    {
      port: edge.port,
      openings: [
        ...openingsFor({ host: tunnel.host, get: '/bytes/100000', post: '/', body: '{}' }),
        ...openingsFor({ host: 'edge', headers: authorized('x'), ...control }),
      ],
    },
  ]
}

function requestsTo(surface: Surface, random: Random): RawRequest[] {
  const count = random.whole(1, REQUESTS_PER_CONNECTION_MAX)
  const isCorrupt = random.chance(0.25)
  return Array.from({ length: count }, (_, index) => {
    const parts = surface.request(random)
    // If requests can merge, the response to a HEAD, which has no body, cannot be identified.
    const isAmbiguous = isCorrupt && parts.method === 'HEAD'
    const request = encode(isAmbiguous ? { ...parts, method: 'GET' } : parts, random, index === count - 1)
    return isCorrupt && random.chance(0.5) ? corrupt(request, random) : request
  })
}

function weighted(surfaces: readonly Surface[], random: Random): Surface {
  return random.pick(surfaces.flatMap((surface) => Array<Surface>(surface.weight).fill(surface)))
}

/** 503 is documented; an edge also returns 502 and 504 for the local server. */
const isAllowed = ({ port }: Surface, status: number, { edge }: Deployment) =>
  status < 500 || status === 503 || (port === edge.port && (status === 502 || status === 504))

const describe = ({ name }: Surface, wrong: string, sent: readonly RawRequest[]) => {
  const requests = sent.map(({ bytes }) => JSON.stringify(bytes.subarray(0, 200).toString('latin1')))
  return [`${name}: ${wrong}`, ...requests].join('\n')
}

/** Waits until the number of descriptors is stable. */
async function settled(watched: readonly { usage(): { descriptors: number } | undefined }[]): Promise<void> {
  const count = () => watched.map(({ usage }) => usage()?.descriptors).join()
  let last = ''
  let since = performance.now()
  await until(
    'connections are closed',
    () => {
      const now = count()
      if (now !== last) since = performance.now()
      last = now
      return performance.now() - since > 3_000
    },
    QUIET_WITHIN_MS,
  )
}

/** Asserts that other clients are served. */
async function assertServed({ plane, edge, tunnel, credentials }: Deployment): Promise<void> {
  const headers = { authorization: `Bearer ${credentials.key}` }
  const workspace = await fetch(`${plane.url}/api/v1/workspace`, { headers })
  assert.equal(workspace.status, 200)
  const { status } = await fetchHost(edge, tunnel.host)
  assert.equal(status, 200)
}
