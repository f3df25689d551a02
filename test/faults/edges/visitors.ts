// Visitors of the tunnels, behind a load balancer that knows at once which edges are out: it sends a GET that
// got no response there to another edge. A response with any status is final.
import { request as send } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { measureStolen } from '../../../bench/stolen.ts'
import type { Random } from '../../support/random.ts'
import type { Workers } from '../scenario/workers.ts'
import { type EdgeCluster, PASSWORD, type TestEdge, type TestTunnel } from './deployment.ts'

const VISITORS = 6
const SLOW_MS = 1_500
const BODY = Buffer.alloc(2_000, 'x')

/** One request of a visitor. */
export interface Visit {
  readonly id: string
  readonly tunnel: TestTunnel
  readonly kind: 'GET' | 'POST' | 'without password' | 'another group'
  /** How long the local server waits. */
  readonly delayMs: number
  readonly startMs: number
  endMs: number
  /** What the host of this virtual machine took meanwhile, as a share of the needed processor time. */
  stolen: number
  /** Undefined if there was no response. */
  status: number | undefined
  body: string
  /** The edges to which it was sent, and the one of the response last. */
  readonly edges: TestEdge[]
}

export function startVisitors(cluster: EdgeCluster, workers: Workers, random: Random): Visit[] {
  const visits: Visit[] = []
  for (let index = 0; index < VISITORS; index++) {
    const own = random.fork(`visitor-${index}`)
    workers.loop(async (iteration) => {
      await sleep(own.between(5, 40))
      const visit = drawVisit(cluster, own, `${index}-${iteration}`)
      await perform(visit, own.shuffled(findEdges(cluster, visit)))
      visits.push(visit)
    })
  }
  return visits
}

function drawVisit({ tunnels }: EdgeCluster, random: Random, id: string): Visit {
  const tunnel = random.pick(tunnels)
  const chance = random.between(0, 1)
  const kind =
    chance < 0.05
      ? 'another group'
      : chance < 0.15
        ? 'POST'
        : chance < 0.3 && tunnel.hasPassword
          ? 'without password'
          : 'GET'
  const delayMs = kind === 'GET' && random.chance(0.1) ? SLOW_MS : 0
  const startMs = performance.now()
  return {
    ...{ id, tunnel, kind, delayMs, startMs, endMs: startMs },
    ...{ stolen: 0, status: undefined, body: '', edges: [] },
  }
}

const findEdges = ({ edges }: EdgeCluster, { kind, tunnel }: Visit) =>
  edges.filter(({ group }) => (group === tunnel.group) !== (kind === 'another group'))

async function perform(visit: Visit, edges: readonly TestEdge[]): Promise<void> {
  const stolen = measureStolen()
  for (const edge of edges) {
    if (edge.isOut) continue
    visit.edges.push(edge)
    try {
      Object.assign(visit, await attempt(visit, edge))
      break
    } catch {
      // The edge is gone.
      if (visit.kind === 'POST') break
    }
  }
  visit.endMs = performance.now()
  visit.stolen = stolen()
}

function attempt({ id, tunnel, kind, delayMs }: Visit, { port, outage }: TestEdge) {
  const authorization = `Basic ${Buffer.from(PASSWORD).toString('base64')}`
  const isPost = kind === 'POST'
  return new Promise<Pick<Visit, 'status' | 'body'>>((resolve, reject) => {
    const request = send(
      {
        ...{ host: '127.0.0.1', port, path: `/${delayMs}/${id}`, agent: false, signal: outage.signal },
        method: isPost ? 'POST' : 'GET',
        headers: { host: tunnel.host, ...(kind !== 'without password' && { authorization }) },
      },
      (response) => {
        let body = ''
        response.on('data', (chunk) => {
          body += chunk
        })
        response.on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode, body }))
      },
    )
    request.on('error', reject)
    request.end(isPost ? BODY : undefined)
  })
}
