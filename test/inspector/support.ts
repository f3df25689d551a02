// A tunnel that records, through a standalone edge, and the API on the socket of its user.
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { Server } from 'node:net'
import { join } from 'node:path'
import type { Exchange, ExchangeList, ExchangeSummary } from '../../src/inspector/api.ts'
import { callLocal } from '../../src/inspector/local/client.ts'
import { findSockets } from '../../src/inspector/local/socket-folder.ts'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { startStandaloneEdge } from '../support/edges/standalone-edge.ts'
import { fetchHost, openTunnel } from '../support/edges/tunnels.ts'
import { listen } from '../support/network/listen.ts'
import { run } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

/** The folder for sockets is `adit` in it. */
export function createRuntimeFolder(t: Test): string {
  const folder = createFolder(t)
  mkdirSync(join(folder, 'adit'), { mode: 0o700 })
  return folder
}

/** `server` gets the requests; it may have WebSockets. */
export async function startInspected(t: Test, server: Server = createServer(), flags: string[] = []) {
  const folder = createRuntimeFolder(t)
  const port = await listen(t, server)
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const env = { XDG_RUNTIME_DIR: folder }
  const options = { edge, key: keys[0] as string, port, name: 'app', flags: ['--inspect', ...flags], env }
  const tunnel = await openTunnel(t, options)
  const [socket] = await findSockets(join(folder, 'adit'))
  if (!socket) throw new Error('The tunnel has no socket.')

  async function call<T>(
    path: string,
    method: 'GET' | 'POST' | 'DELETE' = 'GET',
    input?: object,
  ): Promise<T> {
    const { status, body } = await callLocal(socket as NonNullable<typeof socket>, method, path, input)
    if (status >= 400) throw new Error(`${status} ${body}`)
    return (body.length === 0 ? undefined : JSON.parse(String(body))) as T
  }
  const list = async (query = '') => (await call<ExchangeList>(`/api/requests?${query}`)).requests
  return {
    edge,
    port,
    tunnel,
    folder,
    call,
    list,
    read: (id: string, query = '') => call<Exchange>(`/api/requests/${id}?${query}`),
    fetch: (request: Parameters<typeof fetchHost>[2]) => fetchHost(edge, tunnel.host, request),
    /** Sends a request, and resolves with its exchange once it is complete. */
    async exchange(request: NonNullable<Parameters<typeof fetchHost>[2]>): Promise<Exchange> {
      const mark = randomBytes(8).toString('hex')
      const path = `${request.path ?? '/'}?${mark}`
      await fetchHost(edge, tunnel.host, { ...request, path })
      let found: ExchangeSummary | undefined
      await until('the exchange is recorded', async () => {
        found = (await list(`path=${mark}`))[0]
        return found && found.state !== 'pending'
      })
      return call<Exchange>(`/api/requests/${found?.id}`)
    },
    /** Runs a command of the same user. */
    adit: (args: string[], input = '') => run(t, args, env, input),
  }
}

export const httpServer = (listener: RequestListener) => createServer(listener)
