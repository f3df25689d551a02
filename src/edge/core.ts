// What an edge has before it listens: the tunnels, what they carry, and the verifier of their keys.
import type { Verifier } from '../edge-sdk/index.ts'
import { EdgeInstruments } from '../lib/metrics/edge-instruments.ts'
import { SharedBufferBudget } from '../tunnel-protocol/buffers/buffer-budget.ts'
import { EDGE_BUFFERED_BYTES_MAX } from './admission/workspace-load.ts'
import { applyChanges, type ChangedParts } from './control-plane/changes.ts'
import { Forwarding } from './forwarding.ts'
import type { EdgeOptions } from './options.ts'
import { Traffic } from './traffic.ts'
import { TunnelFactory } from './tunnels/factory.ts'
import { Registry } from './tunnels/registry.ts'

export interface EdgeCore extends ChangedParts {
  readonly instruments: EdgeInstruments
  readonly buffers: SharedBufferBudget
  readonly factory: TunnelFactory
}

export function createCore(options: EdgeOptions): EdgeCore {
  const instruments = new EdgeInstruments()
  const buffers = new SharedBufferBudget(EDGE_BUFFERED_BYTES_MAX)
  const traffic = new Traffic(() => core.names?.mayCarry() ?? options.startReporter === undefined)
  const factory = new TunnelFactory({ ...options, buffers, transferred: instruments.transferred })
  const forwarding = new Forwarding(options)
  const registry = new Registry({
    ...options,
    factory,
    onClosed(tunnel, client, reason) {
      core.names?.closed(tunnel, client, reason)
      options.onClosed(tunnel, client, reason)
    },
    onTransfer: traffic.mayCarry,
    onChanged: (tunnel) => forwarding.onTunnelChanged(tunnel),
  })
  const parts = { instruments, buffers, traffic, factory, registry, forwarding, names: undefined }
  const verifier = countVerdicts(
    instruments,
    options.startVerifier(applyChanges(() => core, options.worker !== undefined)),
  )
  const core: EdgeCore = { ...parts, verifier }
  return core
}

const countVerdicts = (instruments: EdgeInstruments, verifier: Verifier): Verifier => ({
  ...verifier,
  async verify(key) {
    try {
      const result = await verifier.verify(key)
      instruments.countVerdict(result.valid ? 'valid' : result.reason)
      return result
    } catch (error) {
      instruments.countVerdict('unavailable')
      throw error
    }
  },
})
