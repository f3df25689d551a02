// `adit tunnel` and `adit tunnel tcp`: expose a local server, or the files of a folder, through an edge until
// they are stopped.
import type { TunnelType } from '../../tunnel-protocol/protocol.ts'
import type { Io } from '../io.ts'
import { accessNote } from './access.ts'
import { type EdgeInput, findEdge } from './edge-address.ts'
import { openOutput } from './output.ts'
import { prepareTunnel, runPrepared, shutdownSignals, type TunnelInput } from './run-tunnel.ts'

export async function tunnel(type: TunnelType, input: TunnelInput & EdgeInput, io: Io): Promise<void> {
  const output = openOutput(io)()
  const prepared = await prepareTunnel(type, input, output, io)
  const edge = await findEdge(input, io)
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
    },
  })
  if (shown !== undefined) output.info('Tunnel closed.')
}
