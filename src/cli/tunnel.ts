// `adit tunnel <port>`: makes a local server reachable through an edge, until it is stopped.
import { AditError, createClient } from '../client/index.ts'
import { clientEnvironment, edgeSettings } from '../config.ts'
import type { ProxiedRequest } from '../tunnels/client/local-server.ts'
import { runTunnel, TunnelRejected } from '../tunnels/client/run-tunnel.ts'
import type { Opened } from '../tunnels/protocol.ts'
import { type ApiInput, explained, findAccess, findKey, requireAddress } from './api.ts'
import { CommandError, NotAuthenticated, UsageError } from './errors.ts'
import type { Io } from './io.ts'
import { awaitShutdown } from './shutdown.ts'

const LOCAL_EDGE = `http://127.0.0.1:${edgeSettings.ADIT_EDGE_PORT.fallback}`

export interface TunnelInput extends ApiInput {
  port: string
  name: string | undefined
  edge: string | undefined
}

export async function tunnel(input: TunnelInput, io: Io): Promise<void> {
  const port = Number(/^\d{1,5}$/.test(input.port) ? input.port : Number.NaN)
  if (!(port >= 1 && port <= 65_535))
    throw new UsageError(`"${input.port}" is no port: it must be 1 to 65535.`)
  const { edge, key, isGuessed } = await findEdge(input)
  const ending = new AbortController()
  awaitShutdown(0).asked.then(() => ending.abort())
  let shown: string | undefined
  let lost: string | undefined
  try {
    await runTunnel({
      edge,
      key,
      name: input.name,
      host: 'localhost',
      port,
      signal: ending.signal,
      onOpen({ url, host, name }: Opened) {
        const target = `http://localhost:${port}`
        if (shown !== undefined) io.info('The tunnel is open again.')
        // Scripts wait for the address, and want it once; in JSON each line says what it tells of.
        if (io.json || shown !== url) io.data({ event: 'open', url, host, name, target }, url)
        if (shown !== url) io.info(`It leads to ${target}. Ctrl-C closes it.\n`)
        shown = url
        lost = undefined
      },
      onLost(why) {
        // The same trouble is told of once.
        if (lost === why || ending.signal.aborted) return
        const hint = shown === undefined && isGuessed ? ' --edge or ADIT_EDGE_URL names another edge.' : ''
        io.info(`${why}${hint} Trying again.`)
        if (io.json) io.data({ event: 'lost', message: why }, '')
        lost = why
      },
      onRequest(request) {
        if (io.json) io.data({ event: 'request', ...request, ms: Math.round(request.ms) }, '')
        else io.info(lineOf(request))
      },
    })
  } catch (error) {
    throw error instanceof TunnelRejected ? refused(error) : error
  }
  if (shown !== undefined) io.info('Closed.')
}

const lineOf = ({ method, path, status, ms }: ProxiedRequest) =>
  `${new Date().toISOString().slice(11, 19)}  ${status}  ${String(Math.round(ms)).padStart(5)} ms  ${method.padEnd(6)} ${path}`

function refused({ code, message }: TunnelRejected): Error {
  if (code === 'unauthorized') return new NotAuthenticated(message)
  return code === 'invalid_request' ? new UsageError(message) : new CommandError(code, message)
}

/** Named, or where the workspace's tunnels are: DNS leads from any of their names to an edge. */
async function findEdge(input: TunnelInput): Promise<{ edge: string; key: string; isGuessed: boolean }> {
  const named = input.edge ?? clientEnvironment().edgeUrl
  if (named !== undefined) {
    requireAddress(named, 'the edge')
    return { edge: named.replace(/\/+$/, ''), key: findKey(input), isGuessed: false }
  }
  const access = findAccess(input)
  try {
    const workspace = await createClient(access).workspace.read()
    const { tunnelBase, exampleUrl = '' } = workspace as { tunnelBase?: string; exampleUrl?: string }
    const base = tunnelBase ?? exampleUrl.replace(/^(https?:\/\/)?[^.]+\./, '')
    const isHere = /(^|\.)localhost$/.test(base)
    const { protocol } = new URL(access.baseUrl)
    return { edge: isHere ? LOCAL_EDGE : `${protocol}//${base}`, key: access.apiKey, isGuessed: true }
  } catch (error) {
    throw error instanceof AditError ? explained(error, access.baseUrl) : error
  }
}
