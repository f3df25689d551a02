// The tunnels that an agent has opened: one for each port, recorded, and closed when `adit mcp` ends.
import type { Opened } from '../../tunnel-protocol/protocol.ts'
import type { ApiInput } from '../api.ts'
import { CommandError, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { findEdge } from '../tunnels/edge-address.ts'
import { startInspector } from '../tunnels/inspect.ts'
import { flagSource, type OptionSource } from '../tunnels/option-source.ts'
import type { TunnelOutput } from '../tunnels/output.ts'
import { prepareTunnel, runPrepared } from '../tunnels/run-tunnel.ts'

interface AgentTunnelsOptions {
  readonly access: ApiInput
  readonly maskHeaders: string[]
  readonly io: Io
}

interface RequestedTunnel {
  readonly port: number
  readonly name: string | undefined
  readonly rewriteHost: boolean
}

interface RunningTunnel {
  readonly rewriteHost: boolean
  readonly opened: Promise<Opened>
  readonly ended: Promise<void>
  /** Closes the tunnel after the requests in progress. */
  readonly stop: AbortController
  /** Closes it at once, and aborts them. */
  readonly abort: AbortController
}

export class AgentTunnels {
  readonly #options: AgentTunnelsOptions
  readonly #running = new Map<number, RunningTunnel>()

  constructor(options: AgentTunnelsOptions) {
    this.#options = options
  }

  /** Resolves with the tunnel of the port, which may be open already. */
  async open(requested: RequestedTunnel, signal: AbortSignal): Promise<Opened> {
    const { port, name, rewriteHost } = requested
    // One that is being closed is not open again.
    if (this.#running.get(port)?.stop.signal.aborted) await this.#running.get(port)?.ended
    const tunnel = this.#running.get(port) ?? this.#start(requested)
    if (tunnel.rewriteHost !== rewriteHost)
      throw new CommandError(
        'conflict',
        `The tunnel of port ${port} was opened ${rewriteHost ? 'without' : 'with'} "rewrite_host". Close it first.`,
      )
    const cancel = () => tunnel.stop.abort()
    signal.addEventListener('abort', cancel)
    const opened = await tunnel.opened.finally(() => signal.removeEventListener('abort', cancel))
    if (name !== undefined && opened.name !== name)
      throw new CommandError('conflict', `Port ${port} has the tunnel "${opened.name}". Close it first.`)
    return opened
  }

  /** Resolves when it is closed; false if there is none. */
  async close(port: number): Promise<boolean> {
    const tunnel = this.#running.get(port)
    tunnel?.stop.abort()
    await tunnel?.ended
    return tunnel !== undefined
  }

  /** Does not wait for requests: the program that started this one waits for its exit. */
  async closeAll(): Promise<void> {
    const tunnels = [...this.#running.values()]
    for (const { stop, abort } of tunnels) {
      stop.abort()
      abort.abort()
    }
    await Promise.all(tunnels.map(({ ended }) => ended))
  }

  #start(requested: RequestedTunnel): RunningTunnel {
    const { promise: opened, resolve, reject } = Promise.withResolvers<Opened>()
    const [stop, abort] = [new AbortController(), new AbortController()]
    const { io } = this.#options
    let isOpen = false
    const onOpen = (opened: Opened) => {
      isOpen = true
      resolve(opened)
    }
    /** `adit tunnel` would retry; an agent gets the error and can decide. */
    const onLost = (message: string) => {
      if (isOpen) return
      stop.abort()
      reject(new CommandError('unreachable', message))
    }
    const ended = this.#run(requested, { stop, abort, onOpen, onLost })
      .catch((error: Error) => {
        if (isOpen) io.warn(error.message)
        reject(error)
      })
      .finally(() => {
        this.#running.delete(requested.port)
        reject(new CommandError('closed', 'The tunnel was closed before it was open.'))
      })
    const tunnel = { rewriteHost: requested.rewriteHost, opened, ended, stop, abort }
    this.#running.set(requested.port, tunnel)
    return tunnel
  }

  async #run(
    { port, name, rewriteHost }: RequestedTunnel,
    { stop, abort, onOpen, onLost }: Pick<RunningTunnel, 'stop' | 'abort'> & Handlers,
  ): Promise<void> {
    const { access, maskHeaders, io } = this.#options
    const inspector = await startInspector([{ 'mask-header': maskHeaders }])
    try {
      const input = {
        target: String(port),
        name,
        pool: false,
        inspect: true,
        'host-header': rewriteHost ? 'rewrite' : undefined,
        'basic-auth': undefined,
        'allow-ip': [],
        source: argumentSource,
      }
      const prepared = await prepareTunnel('http', input, outputOf(io, onLost), io, inspector)
      const edge = await findEdge({ ...access, edge: undefined, edges: undefined }, io)
      const signals = { signal: stop.signal, abortSignal: abort.signal }
      await runPrepared(prepared, { edge, signals, onOpen })
    } finally {
      inspector.close()
    }
  }
}

interface Handlers {
  onOpen(opened: Opened): void
  onLost(message: string): void
}

/** Warnings are for the log of the program that started this one: standard output has the protocol. */
const outputOf = (io: Io, onLost: Handlers['onLost']): TunnelOutput => ({
  event(event, fields) {
    if (event === 'lost') onLost((fields as { message: string }).message)
  },
  info: () => undefined,
  warn: (message) => io.warn(message),
  fail: (message) => io.warn(message),
  request: () => undefined,
  connection: () => undefined,
})

/** Messages name the arguments of the tool. */
const argumentSource: OptionSource = {
  invalid: (_, describe) =>
    new UsageError(describe((option) => (option === 'target' ? 'port' : `"${option}"`))),
  advise: (option, value) => (option === 'host-header' ? '"rewrite_host"' : flagSource.advise(option, value)),
}
