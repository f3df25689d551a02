// `adit tunnel` and `adit tunnel tcp`: expose a local server, or the files of a folder, through an edge until
// they are stopped.
import type { Inspector } from '../../inspector/open.ts'
import type { TunnelType } from '../../tunnel-protocol/protocol.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { accessNote } from './access.ts'
import { type EdgeInput, findEdge } from './edge-address.ts'
import { announceInspector, type InspectInput, startInspector } from './inspect.ts'
import { openOutput } from './output.ts'
import {
  type PreparedTunnel,
  prepareTunnel,
  runPrepared,
  shutdownSignals,
  type TunnelInput,
} from './run-tunnel.ts'

export async function tunnel(
  type: TunnelType,
  input: TunnelInput & EdgeInput & InspectInput,
  io: Io,
): Promise<void> {
  if (input.inspect && type === 'tcp')
    throw new UsageError('Only requests of HTTP tunnels are recorded. Leave out --inspect.')
  if (!input.inspect && (input['mask-header'] ?? []).length > 0)
    throw new UsageError('--mask-header has no effect without --inspect.')
  const output = openOutput(io)()
  const inspector = input.inspect ? await startInspector([input], commandOf(input)) : undefined
  try {
    const prepared = await prepareTunnel(type, input, output, io, inspector)
    await run(prepared, await findEdge(input, io), inspector, io)
  } finally {
    inspector?.close()
  }
}

const commandOf = ({ target, name }: TunnelInput): string[] => [
  'adit',
  'tunnel',
  ...(target === undefined ? [] : [target]),
  ...(name === undefined ? [] : ['--name', name]),
  '--inspect',
]

async function run(
  prepared: PreparedTunnel,
  edge: Awaited<ReturnType<typeof findEdge>>,
  inspector: Inspector | undefined,
  io: Io,
): Promise<void> {
  const { output } = prepared
  let shown: string | undefined
  await runPrepared(prepared, {
    edge,
    signals: shutdownSignals(),
    onOpen({ url, access }) {
      if (shown === url) return
      shown = url
      // Scripts read the URL from the first line of output; with --json, the event has it.
      if (!io.json) io.data(undefined, url)
      output.info(`${prepared.target.note}.${accessNote(access)} Press Ctrl-C to stop.\n`)
      if (inspector) announceInspector(inspector, output)
    },
  })
  if (shown !== undefined) output.info('Tunnel closed.')
}
