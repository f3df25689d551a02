// `adit tunnels …`: the open tunnels of a workspace, through the API.
import type { Client } from '../../client/index.ts'
import { type ApiInput, withApi } from '../api.ts'
import { formatBytes } from '../bytes.ts'
import { CommandError, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { describeAccess } from '../tunnels/describe-access.ts'
import { isNotFound, readPages } from './pages.ts'

type Tunnel = Awaited<ReturnType<Client['tunnels']['read']>>

export async function list(input: ApiInput & { name: string | undefined }, io: Io): Promise<void> {
  const filter = input.name === undefined ? {} : { name: input.name }
  await withApi(input, ({ tunnels }) =>
    io.list(
      readPages(
        (page) => tunnels.list({ ...filter, ...page }),
        (page) => page.tunnels,
      ),
      {
        columns: {
          ID: (tunnel) => tunnel.id,
          URL: (tunnel) => tunnel.url,
          KEY: (tunnel) => keyName(tunnel),
          CLIENT: (tunnel) => tunnel.client.address,
          EDGES: (tunnel) => edgeNames(tunnel),
          OPENED: (tunnel) => io.time(tunnel.openedAt),
          REQUESTS: (tunnel) => String(tunnel.requests),
        },
        empty: 'No open tunnels.',
        shrink: ['EDGES', 'KEY', 'CLIENT', 'OPENED'],
      },
    ),
  )
}

const keyName = ({ key }: Tunnel) => key.label || key.id
const edgeNames = ({ edges }: Tunnel) => edges.map(({ name }) => name).join(', ')

export async function show(input: ApiInput & { id: string }, io: Io): Promise<void> {
  const tunnel = await withApi(input, (client) => read(client, input.id))
  const lines = describe(tunnel, io).map(([name, value]) => `  ${name.padEnd(11)}${value}`)
  io.data(tunnel, [`${tunnel.name} (${tunnel.id})`, ...lines].join('\n'))
}

async function read({ tunnels }: Client, id: string): Promise<Tunnel> {
  try {
    return await tunnels.read({ id })
  } catch (error) {
    throw isNotFound(error) ? noOpenTunnel(id) : error
  }
}

function describe(tunnel: Tunnel, io: Io): [name: string, value: string][] {
  const { url, type, pool, key, client, access, closeRequestedAt } = tunnel
  return [
    ['URL', url],
    ['Type', `${type}${pool ? ', shared with other clients' : ''}`],
    ['Edges', edgeNames(tunnel)],
    ['API key', key.label ? `${key.label} (${key.id})` : key.id],
    ['Client', client.version === null ? client.address : `${client.address}, ${client.version}`],
    ['Access', describeAccess({ hasPassword: access.basicAuth, allowIp: access.allowIp })],
    ['Opened', io.time(tunnel.openedAt)],
    ['Requests', `${tunnel.requests.toLocaleString('en-US')}, in progress: ${tunnel.streams}`],
    ['Traffic', `${formatBytes(tunnel.bytesIn)} in, ${formatBytes(tunnel.bytesOut)} out`],
    ...(closeRequestedAt === null
      ? []
      : [['Closing', `since ${io.time(closeRequestedAt)}`] as [string, string]]),
  ]
}

export async function close(input: ApiInput & { id: string; yes: boolean }, io: Io): Promise<void> {
  const { id, yes } = input
  if (!yes && !io.interactive)
    throw new UsageError('Closing a tunnel aborts requests in progress. Confirm with --yes.')
  const closed = await withApi(input, async (client) => {
    if (!yes) await confirm(await read(client, id), io)
    try {
      return await client.tunnels.close({ id })
    } catch (error) {
      throw isNotFound(error) ? noOpenTunnel(id) : error
    }
  })
  io.data(closed, `Closed ${id}.`)
}

async function confirm(tunnel: Tunnel, io: Io): Promise<void> {
  const opened = `opened with the API key "${keyName(tunnel)}" by ${tunnel.client.address}`
  if (!(await io.confirm(`Close ${tunnel.url}, ${opened}? Requests in progress are aborted.`)))
    throw new CommandError('canceled', 'Canceled. Nothing was closed.')
}

const noOpenTunnel = (id: string) =>
  new CommandError('not_found', `No open tunnel ${id}. Run \`adit tunnels list\` to list tunnels.`)
