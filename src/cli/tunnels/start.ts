// `adit start`: opens the tunnels of adit.json together. Prints a table of them and a line for each request.

import type { Inspector } from '../../inspector/open.ts'
import { oneLine } from '../../lib/net/untrusted-text.ts'
import { clientEnvironment } from '../../server/config/environment.ts'
import { CommandError, NotAuthenticated, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { green, red, type Styled, yellow } from '../style.ts'
import { type EdgeInput, findEdge } from './edge-address.ts'
import { announceInspector, startInspector } from './inspect.ts'
import { openOutput } from './output.ts'
import { openPinnedTable } from './pinned-table.ts'
import { confirmTargets, noProjectFile, type ProjectTunnelInput, readProject } from './project/read.ts'
import { type PreparedTunnel, prepareTunnel, runPrepared, shutdownSignals } from './run-tunnel.ts'

interface StartInput extends EdgeInput {
  names: string[]
  yes: boolean
}

interface Row {
  readonly name: string
  readonly target: string
  url: string
  state: Styled
}

export async function start(input: StartInput, io: Io): Promise<void> {
  const project = await readProject()
  if (!project) throw noProjectFile()
  const tunnels = select(project.tunnels, input.names)
  await confirmTargets(project.path, tunnels, input.yes, io)
  const inspected = tunnels.filter(({ inspect }) => inspect)
  const inspector =
    inspected.length > 0 ? await startInspector(inspected, ['adit', 'start', ...input.names]) : undefined
  try {
    await startAll(tunnels, inspector, input, io)
  } finally {
    inspector?.close()
  }
}

async function startAll(
  tunnels: readonly ProjectTunnelInput[],
  inspector: Inspector | undefined,
  input: StartInput,
  io: Io,
): Promise<void> {
  const outputFor = openOutput(
    io,
    tunnels.map(({ name }) => name),
  )
  const prepared: (PreparedTunnel & { row: Row })[] = []
  // In sequence, because each may ask for a password.
  for (const tunnel of tunnels) {
    const { name, type } = tunnel
    const ready = await prepareTunnel(type, withPassword(tunnel), outputFor(name), io, inspector)
    const row = { name, target: ready.target.target, url: '', state: yellow('opening') }
    prepared.push({ ...ready, row })
  }
  const edge = await findEdge(input, io)
  const signals = shutdownSignals()
  const rows = prepared.map(({ row }) => row)
  const table = openPinnedTable(io, rows, {
    NAME: ({ name }) => name,
    URL: ({ url }) => url,
    TARGET: ({ target }) => target,
    STATE: ({ state }) => state,
  })
  if (inspector) announceInspector(inspector, outputFor())
  const runs = prepared.map((tunnel) => run(tunnel, edge, signals, table.update))
  const failures = (await Promise.all(runs)).filter((failure) => failure !== undefined)
  table.close()
  throwFailures(failures, rows.length)
}

/** Resolves when the tunnel is closed, with an error unless the user closed it. */
async function run(
  tunnel: PreparedTunnel & { row: Row },
  edge: Awaited<ReturnType<typeof findEdge>>,
  signals: ReturnType<typeof shutdownSignals>,
  redraw: () => void,
): Promise<Error | undefined> {
  const { row, output } = tunnel
  const show = (state: Styled, url = row.url) => {
    Object.assign(row, { state, url })
    redraw()
  }
  try {
    await runPrepared(tunnel, {
      edge,
      signals,
      onOpen: ({ url }) => show(green('open'), url),
      onLost: () => show(yellow('reconnecting')),
    })
    show(yellow('closed'))
    return undefined
  } catch (error) {
    const { message } = error as Error
    output.event('rejected', { message })
    output.fail(oneLine(message))
    show(red('rejected'))
    return error as Error
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

/**
 * Adds the password from ADIT_TUNNEL_BASIC_AUTH if it is for the user of the tunnel; else it is asked for
 * later.
 */
function withPassword(tunnel: ProjectTunnelInput): ProjectTunnelInput {
  const { tunnelBasicAuth } = clientEnvironment()
  const user = tunnel['basic-auth']
  return user !== undefined && tunnelBasicAuth?.startsWith(`${user}:`)
    ? { ...tunnel, 'basic-auth': tunnelBasicAuth }
    : tunnel
}

/** Each tunnel has printed its reason. */
function throwFailures(failures: Error[], count: number): void {
  if (failures.length === 0) return
  const message = `${failures.length} of ${count} tunnels failed; see above.`
  const isUnauthorized = failures.some((failure) => failure instanceof NotAuthenticated)
  throw isUnauthorized ? new NotAuthenticated(message) : new CommandError('rejected', message)
}
