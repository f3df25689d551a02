// `adit start`: opens the tunnels of adit.json together. Prints a table of them and a line for each request.
import { oneLine } from '../../lib/net/untrusted-text.ts'
import { clientEnvironment, readProxies } from '../../server/config/environment.ts'
import { version } from '../../server/config/server.ts'
import { TunnelRejected } from '../../tunnel-client/connect.ts'
import { runTunnel } from '../../tunnel-client/run.ts'
import type {
  Opened,
  ProxiedConnection,
  ProxiedRequest,
  RequestedAccess,
} from '../../tunnel-protocol/protocol.ts'
import { CommandError, NotAuthenticated, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { green, red, type Styled, yellow } from '../style.ts'
import { readAccess } from './access.ts'
import { withCertificateAdvice } from './certificate-advice.ts'
import { type EdgeInput, findEdge } from './edge-address.ts'
import { openPinnedTable } from './pinned-table.ts'
import { confirmTargets, noProjectFile, type ProjectTunnelInput, readProject } from './project/read.ts'
import { openTarget } from './target.ts'
import { batchLines, connectionLine, requestLine, shutdownSignals, toTunnelError } from './tunnel.ts'

interface StartInput extends EdgeInput {
  names: string[]
  yes: boolean
}

interface Row {
  readonly name: string
  target: string
  url: string
  state: Styled
}

interface PreparedTunnel {
  readonly tunnel: ProjectTunnelInput
  readonly row: Row
  readonly target: Awaited<ReturnType<typeof openTarget>>
  readonly access: RequestedAccess | undefined
}

export async function start(input: StartInput, io: Io): Promise<void> {
  const project = await readProject()
  if (!project) throw noProjectFile()
  const tunnels = select(project.tunnels, input.names)
  await confirmTargets(project.path, tunnels, input.yes, io)
  const prepared: PreparedTunnel[] = []
  // One after the other: each may ask for a password.
  for (const tunnel of tunnels) prepared.push(await prepare(tunnel, io))
  const edge = await findEdge(input, io)
  const rows = prepared.map(({ row }) => row)
  const shared = { io, edge, signals: shutdownSignals(), lines: batchLines(io) }
  const table = openPinnedTable(io, rows, {
    NAME: ({ name }) => name,
    URL: ({ url }) => url,
    TARGET: ({ target }) => target,
    STATE: ({ state }) => state,
  })
  const labelWidth = Math.max(...rows.map(({ name }) => name.length)) + 2
  const runs = prepared.map((tunnel) =>
    run(tunnel, { ...shared, label: tunnel.row.name.padEnd(labelWidth), update: table.update }),
  )
  const failures = (await Promise.all(runs)).filter((failure) => failure !== undefined)
  table.close()
  throwFailures(failures, rows.length)
}

async function prepare(tunnel: ProjectTunnelInput, io: Io): Promise<PreparedTunnel> {
  const { name, type } = tunnel
  const show = (event: string, fields: { code?: string; message: string }) => {
    io.warn(`${name}: ${fields.message}`)
    report(io, event, { name }, fields)
  }
  const target = await openTarget(type, tunnel, {
    onProblem: (code, message) => show('problem', { code, message }),
    onResolved: (message) => show('resolved', { message }),
  })
  const access = await readAccess(type, withPassword(tunnel), io)
  const row = { name, target: target.target, url: '', state: yellow('opening') }
  return { tunnel, row, target, access }
}

interface RunOptions {
  readonly io: Io
  readonly edge: Awaited<ReturnType<typeof findEdge>>
  readonly signals: ReturnType<typeof shutdownSignals>
  readonly lines: ReturnType<typeof batchLines>
  /** The prefix of the tunnel's output lines. */
  readonly label: string
  /** Redraws the table after a change of a row. */
  update(): void
}

/** Resolves when the tunnel is closed, with an error unless the user closed it. */
async function run(prepared: PreparedTunnel, options: RunOptions): Promise<Error | undefined> {
  const { tunnel, row, target, access } = prepared
  const { edge, signals, lines, label, update } = options
  try {
    await runTunnel({
      edge: edge.edge,
      key: edge.apiKey,
      type: tunnel.type,
      name: tunnel.name,
      pool: tunnel.pool,
      access,
      ...target.request,
      client: `adit ${version}`,
      localServer: target.localServer,
      findProxy: readProxies(),
      ...signals,
      ...handlers(prepared, options),
    })
    row.state = yellow('closed')
    update()
    return undefined
  } catch (error) {
    const failure = error instanceof TunnelRejected ? toTunnelError(error, edge.keySource) : (error as Error)
    report(options.io, 'rejected', row, { message: failure.message })
    lines.info([label, red('!'), ` ${oneLine(failure.message)}`])
    row.state = red('rejected')
    update()
    return failure
  }
}

const report = (io: Io, event: string, { name }: Pick<Row, 'name'>, fields: object) =>
  io.json && io.data({ event, name, ...fields }, '')

function handlers(
  { tunnel, row, target }: PreparedTunnel,
  { io, signals, lines, label, update }: RunOptions,
) {
  let lost: string | undefined
  return {
    onOpen({ url, host, access }: Opened) {
      report(io, 'open', row, { type: tunnel.type, url, host, target: target.target, access })
      lost = undefined
      if (row.url === '') target.localServer.check?.()
      row.url = url
      row.state = green('open')
      update()
    },
    onLost(reason: string) {
      if (lost === reason || signals.signal.aborted) return
      lost = reason
      const message = withCertificateAdvice(reason)
      lines.info([label, yellow('!'), ` ${message} Retrying …`])
      report(io, 'lost', row, { message })
      row.state = yellow('reconnecting')
      update()
    },
    onRequest(request: ProxiedRequest) {
      if (io.json) report(io, 'request', row, { ...request, ms: Math.round(request.ms) })
      else lines.infoSoon([label, requestLine(request)])
      target.problems?.onRequest(request)
    },
    onConnection(connection: ProxiedConnection) {
      if (io.json) report(io, 'connection', row, { ...connection, ms: Math.round(connection.ms) })
      else lines.infoSoon([label, connectionLine(connection)])
    },
    onNotice(message: string) {
      lines.info([label, yellow('!'), ` ${message}`])
      report(io, 'notice', row, { message })
    },
  }
}

function select(all: readonly ProjectTunnelInput[], names: string[]): readonly ProjectTunnelInput[] {
  const unknown = names.find((name) => !all.some((tunnel) => tunnel.name === name))
  if (unknown !== undefined)
    throw new UsageError(
      `There is no tunnel "${oneLine(unknown)}" (expected ${all.map(({ name }) => name).join(', ')}).`,
    )
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name))
}

/** Adds the password from ADIT_TUNNEL_BASIC_AUTH if it is for this user; `readAccess` asks for others. */
function withPassword(tunnel: ProjectTunnelInput): ProjectTunnelInput {
  const { tunnelBasicAuth } = clientEnvironment()
  const user = tunnel['basic-auth']
  return user !== undefined && tunnelBasicAuth?.startsWith(`${user}:`)
    ? { ...tunnel, 'basic-auth': tunnelBasicAuth }
    : tunnel
}

function throwFailures(failures: Error[], count: number): void {
  const unauthorized = failures.find((failure) => failure instanceof NotAuthenticated)
  if (unauthorized) throw unauthorized
  if (failures.length > 0)
    throw new CommandError('rejected', `${failures.length} of ${count} tunnels failed; see above.`)
}
