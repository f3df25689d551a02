// Ways to be measured: a server under one kind of request.
import { request } from 'node:http'
import type { Workbench } from './fixtures.ts'
import type { Ask, Job } from './load/jobs.ts'
import type { Served } from './processes.ts'
import { type Side, secondsOf } from './rounds.ts'
import * as plans from './seed/plan.ts'

export const CONNECTIONS = 32
/** As many edges report at once. */
const REPORTERS = plans.REPORTED_DAYS
/** As many keys as a figure's rounds can present; each is presented once before, as on a node that runs for a while. */
export const PRESENTED = 20_000

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** Workspace 1's own key. */
export const ownKey = (bench: Workbench) => bench.minted().keys[0] as string

export const reading = (path: string, token: string): Ask => ({
  method: 'GET',
  path,
  headers: bearer(token),
})

/** One request, over and over; every answer must be like the first. */
export async function getting(
  bench: Workbench,
  served: Served,
  ask: Ask,
  { connections = CONNECTIONS, starts }: { connections?: number; starts?: string } = {},
): Promise<Side> {
  const { body } = await answerTo(served.url, ask)
  const expect = starts === undefined ? { body } : { starts }
  if (starts !== undefined && !body.startsWith(starts))
    throw new Error(`unexpected answer: ${body.slice(0, 200)}`)
  return async (round) => {
    const loaded = await bench.load.run(
      {
        url: served.url,
        connections,
        draw: { kind: 'requests', requests: [ask], each: 'all' },
        until: { seconds: secondsOf(round) },
        expect,
      },
      served.pid,
    )
    return { value: loaded.perSecond, busy: loaded.busy }
  }
}

export interface Verifying {
  path: string
  headers: Record<string, string>
  /** How many keys to draw from. */
  keys: number
}

export const edgeVerifying = (bench: Workbench, keys: number): Verifying => ({
  path: '/edge/v1/keys/verify',
  headers: bearer(bench.minted().edge.token),
  keys: Math.min(keys, PRESENTED),
})

const VALID = { starts: '{"valid":true' }

function verifyJob(bench: Workbench, served: Served, { path, headers, keys }: Verifying, from: number): Job {
  const { file } = bench.minted()
  return {
    url: served.url,
    connections: CONNECTIONS,
    draw: { kind: 'keys', file, lines: keys, from, count: PRESENTED, path, headers },
    until: { seconds: secondsOf(0) },
    expect: VALID,
  }
}

/** Each round begins with other keys. */
export function verifying(bench: Workbench, served: Served, what: Verifying): Side {
  let from = 0
  return async (round) => {
    const job = verifyJob(bench, served, what, from)
    from = (from + PRESENTED / 5) % what.keys
    const loaded = await bench.load.run({ ...job, until: { seconds: secondsOf(round) } }, served.pid)
    return { value: loaded.perSecond, busy: loaded.busy }
  }
}

/** Presents keys, each as often as the next, until so many verifications are answered. */
export async function verifyMany(bench: Workbench, served: Served, what: Verifying, amount: number) {
  const job = verifyJob(bench, served, what, 0)
  const draw = { ...job.draw, count: Math.min(what.keys, amount) } as Job['draw']
  return bench.load.run({ ...job, draw, until: { amount } }, served.pid)
}

/** What an edge sends: a thousand counters, whose values grow with each report. */
export const reportOf = (day: number, workspaces = plans.REPORTED): string => {
  const date = new Date(day).toISOString()
  const counters = Array.from(
    { length: workspaces.count },
    (_, index) =>
      `{"workspace":"${plans.slugOf(workspaces.from + index)}","day":"${date.slice(0, 10)}","requests":{n},` +
      `"bytesIn":{n}4821,"bytesOut":{n}9377,"events":{n},"lastSeen":"${date}"}`,
  )
  return `{"epoch":"bench-${date.slice(0, 10)}","counters":[${counters.join(',')}]}`
}

/** Four edges at once, each about a day of its own; the value is counters a second. */
export function reporting(bench: Workbench, served: Served): Side {
  const headers = bearer(bench.minted().edge.token)
  const requests = plans
    .reportedDays()
    .map((day): Ask => ({ method: 'POST', path: '/edge/v1/usage', headers, body: reportOf(day) }))
  return async (round) => {
    const loaded = await bench.load.run(
      {
        url: served.url,
        connections: REPORTERS,
        draw: { kind: 'requests', requests, each: 'one' },
        until: { seconds: secondsOf(round) },
        expect: { body: `{"accepted":${plans.REPORTED.count},"refused":[]}` },
      },
      served.pid,
    )
    return { value: loaded.perSecond * plans.REPORTED.count, busy: loaded.busy }
  }
}

export interface Answer {
  status: number
  rawHeaders: string[]
  body: string
}

export const answerTo = (url: string, { method, path, headers, body }: Ask): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = request(url + path, { method, headers }, async (response) => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk)
      const answer = {
        status: response.statusCode as number,
        rawHeaders: response.rawHeaders,
        body: Buffer.concat(chunks).toString(),
      }
      if (answer.status >= 300) reject(new Error(`${method} ${path}: ${answer.status} ${answer.body}`))
      else resolve(answer)
    })
    sent.once('error', reject)
    sent.end(body)
  })
