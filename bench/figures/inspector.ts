// The inspector: a tunnel client that records its requests, compared with one that does not.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { API, type Info } from '../../src/inspector/api.ts'
import { callLocal } from '../../src/inspector/local/client.ts'
import { findSockets } from '../../src/inspector/local/socket-folder.ts'
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { compare, type Measured } from '../rounds.ts'
import { CPU_CONNECTIONS, MICROSECONDS, repeat, routeRounds, startOrigin } from '../routes.ts'
import { startTunnel } from '../tunnel.ts'

/** How many requests the only tunnel client of the folder has recorded, those that were evicted included. */
async function countRecorded(folder: string): Promise<number> {
  const [socket] = await findSockets(join(folder, 'adit'))
  if (!socket) throw new Error('the tunnel client does not record')
  const { body } = await callLocal(socket, 'GET', API.info)
  const { exchanges, evicted } = JSON.parse(String(body)) as Info
  return exchanges + evicted
}

/** Processor time of the tunnel client per request. */
async function inspected(fixtures: Fixtures): Promise<Measured> {
  const port = await startOrigin(fixtures)
  const start = async (name: string, flags: string[]) => {
    const folder = join(fixtures.folder, name)
    mkdirSync(folder, { recursive: true })
    const settings = { ADIT_EDGE_FOLDER: join(folder, 'edge') }
    return { folder, ...(await fixtures.keep(startTunnel(folder, port, { settings, flags }))) }
  }
  const recording = await start('recording', ['--inspect'])
  const plain = await start('plain', [])
  let sent = 0
  const measure = ({ url, host, clientPid }: typeof plain) => {
    return async (round: number) => {
      const route = { url, host, pids: [clientPid] }
      const { cpuS = Number.NaN, completed, busy } = await repeat(fixtures, route, CPU_CONNECTIONS, round)
      if (clientPid === recording.clientPid) sent += completed
      return { value: (cpuS / completed) * MICROSECONDS, busy }
    }
  }
  const measured = await compare(measure(recording), measure(plain), routeRounds())
  // Requests that were in progress when a round ended are recorded, and not counted by the load.
  const share = Math.min(1, (await countRecorded(recording.folder)) / sent)
  return { ...measured, note: `${Math.round(100 * share)} % of the requests were recorded` }
}

export const inspector: Figure[] = [
  {
    name: 'tunnel_inspect',
    ours: `processor time of a tunnel client with --inspect per request, ${CPU_CONNECTIONS} connections`,
    other: 'the same without --inspect',
    unit: 'µs',
    target: { atMost: 1.75 },
    measure: inspected,
  },
]
