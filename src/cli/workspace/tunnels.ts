// `adit tunnels …`: the open tunnels of a workspace, through the API.
import type { Client } from '../../client/index.ts'
import { isDnsLabel } from '../../lib/net/hostname.ts'
import { type ApiInput, withApi } from '../api.ts'
import { formatBytes } from '../bytes.ts'
import { CommandError, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { describeAccess } from '../tunnels/describe-access.ts'
import { isNotFound, readPages } from './pages.ts'

/** How many ids are shown of tunnels that share a name. */
const IDS_SHOWN = 10

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

interface TunnelInput extends ApiInput {
  /** Its id or its name. */
  tunnel: string
}

export async function show(input: TunnelInput, io: Io): Promise<void> {
  const tunnel = await withApi(input, (client) => find(client, input.tunnel))
  const lines = describe(tunnel, io).map(([name, value]) => `  ${name.padEnd(11)}${value}`)
  io.data(tunnel, [`${tunnel.name} (${tunnel.id})`, ...lines].join('\n'))
}

/** Names are DNS labels, so none looks like an id. */
const find = (client: Client, text: string): Promise<Tunnel> =>
  isDnsLabel(text) ? findByName(client, text) : read(client, text)

async function findByName({ tunnels }: Client, name: string): Promise<Tunnel> {
  const pages = readPages(
    (page) => tunnels.list({ name, ...page }),
    (page) => page.tunnels,
  )
  const { value: found = [] } = await pages.next()
  const [tunnel, other] = found as Tunnel[]
  if (!tunnel) throw noOpenTunnel(name)
  if (other) throw severalTunnels(name, found)
  return tunnel
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

export async function close(input: TunnelInput & { yes: boolean }, io: Io): Promise<void> {
  if (!input.yes && !io.interactive)
    throw new UsageError('Closing a tunnel aborts requests in progress. Confirm with --yes.')
  const closed = await withApi(input, async (client) => {
    const tunnel = await find(client, input.tunnel)
    if (!input.yes) await confirm(tunnel, io)
    try {
      return await client.tunnels.close({ id: tunnel.id })
    } catch (error) {
      throw isNotFound(error) ? noOpenTunnel(input.tunnel) : error
    }
  })
  io.data(closed, `Closed ${closed.id}.`)
}

async function confirm(tunnel: Tunnel, io: Io): Promise<void> {
  const opened = `opened with the API key "${keyName(tunnel)}" by ${tunnel.client.address}`
  if (!(await io.confirm(`Close ${tunnel.url}, ${opened}? Requests in progress are aborted.`)))
    throw new CommandError('canceled', 'Canceled. Nothing was closed.')
}

const noOpenTunnel = (tunnel: string) =>
  new CommandError('not_found', `No open tunnel ${tunnel}. Run \`adit tunnels list\` to list tunnels.`)

function severalTunnels(name: string, tunnels: readonly Tunnel[]): UsageError {
  const ids = tunnels.slice(0, IDS_SHOWN).map(({ id }) => id)
  const more = tunnels.length > ids.length ? ', …' : ''
  return new UsageError(
    `Several open tunnels have the name ${name}: ${ids.join(', ')}${more}. Use one of these ids; ` +
      `\`adit tunnels list --name ${name}\` shows their clients.`,
  )
}
