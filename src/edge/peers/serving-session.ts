// A session that another edge has opened: describes the tunnels of this edge to it, and connects its streams
// to their clients. It only knows the clients of this edge, so a request is forwarded at most once.
import type { Socket } from 'node:net'
import { Session, type YamuxStream } from '../../yamux/index.ts'
import type { Traffic } from '../traffic.ts'
import type { TunnelClient } from '../tunnels/client.ts'
import type { Registry } from '../tunnels/registry.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { PeerRelay, type PeerRelayOptions } from '../workers/peer-relay.ts'
import { sessionOptions, toConnection } from './connection.ts'
import { PeerProtocolError, readLines } from './control-lines.ts'
import { connectForwarded, readHead, rejectForwarded } from './forwarded-stream.ts'
import { LINK_LEASE_MS } from './link.ts'
import {
  CLIENTS_MAX,
  type Description,
  type EntryMessage,
  parseEntryMessage,
  type ServingMessage,
  type StreamHead,
  type Subject,
} from './messages.ts'

/** Open streams of one entry edge, those without a request included. */
const STREAMS_MAX = 20_000
/**
 * Requests in progress at one client: it accepts 1,000 streams, and some are for requests that arrive here.
 */
const REQUESTS_PER_CLIENT_MAX = 900
/** As many as an entry edge caches. */
export const DESCRIBED_HOSTS_MAX = 10_000
const UNREAD_BYTES_MAX = 4 * 1024 * 1024
/** An entry edge that takes longer to apply changed rules is disconnected. */
const APPLY_TIMEOUT_MS = 1_000

export interface ServingOptions {
  /** Set if other workers of this edge have clients, too. */
  readonly relay?: PeerRelayOptions | undefined
  readonly registry: Pick<Registry, 'atHost' | 'clientById' | 'isWithdrawn' | 'isReleased'>
  readonly pressure: { readonly isHigh: boolean }
  readonly traffic: Pick<Traffic, 'mayCarry'>
  quotaReachedUntil(workspace: string): number | undefined
  /** Called after each request that was forwarded to the client. */
  readonly onForwarded?: (client: TunnelClient) => void
}

/** After this, an entry edge that does not respond passes on nothing. The rest is for clocks that drift. */
export const ENDED_WITHIN_MS = LINK_LEASE_MS + 100

interface DescribedHost {
  workspace: string | undefined
  revision: number
  /** What the entry edge was told last. */
  line: string
  /** Set until the entry edge has applied the revision. */
  deadline?: NodeJS.Timeout | undefined
  /** Streams that are connected to a client. */
  readonly streams: Set<YamuxStream>
}

export class ServingSession {
  readonly #options: ServingOptions
  readonly #session: Session
  readonly #hosts = new Map<string, DescribedHost>()
  /** Clients that were asked for a sign of life. */
  readonly #probes = new Set<string>()
  readonly #relay: PeerRelay | undefined
  #control: YamuxStream | undefined
  #forwarded = 0
  #hasForwarded = false
  #ends = 0
  /** Called when the entry edge has ended the traffic with that number. */
  readonly #onEnded = new Map<number, () => void>()

  constructor(socket: Socket, options: ServingOptions & { onClosed(): void }) {
    this.#options = options
    this.#relay =
      options.relay &&
      new PeerRelay(options.relay, {
        send: (message) => this.#send(JSON.stringify(message)),
        onGone: (host) => {
          const described = this.#hosts.get(host)
          if (described) this.#describe(host, described, false)
        },
      })
    this.#session = new Session(toConnection(socket), {
      ...sessionOptions(options.pressure),
      role: 'server',
      maxStreams: STREAMS_MAX,
      onTransfer: options.traffic.mayCarry,
      onStream: (stream) => this.#onStream(stream),
      onClose: () => {
        for (const { deadline } of this.#hosts.values()) clearTimeout(deadline)
        this.#relay?.close()
        options.onClosed()
      },
    })
  }

  /** Streams that are connected to a client. */
  get forwarded(): number {
    return this.#forwarded
  }

  /** The entry edge may still pass on something after the session is closed. */
  get hasForwarded(): boolean {
    return this.#hasForwarded
  }

  /** A tunnel was opened, closed or changed. */
  onTunnelChanged(host: string): void {
    const described = this.#hosts.get(host)
    if (described) this.#describe(host, described)
  }

  onQuotaChanged(workspace: string): void {
    for (const [host, described] of this.#hosts)
      if (described.workspace === workspace) this.#describe(host, described)
  }

  /**
   * Call it when the streams of these clients are closed. Resolves when the entry edge passes on nothing of
   * them any more.
   */
  async end(subject: Subject): Promise<void> {
    this.#ends += 1
    const number = this.#ends
    const ended = Promise.withResolvers<void>()
    const timer = setTimeout(ended.resolve, ENDED_WITHIN_MS)
    this.#onEnded.set(number, ended.resolve)
    this.#send(JSON.stringify({ end: number, subject } satisfies ServingMessage))
    await ended.promise
    clearTimeout(timer)
    this.#onEnded.delete(number)
  }

  /** Asks the entry edge to open another session, with another worker of this edge. */
  sendElsewhere(): void {
    this.#send(JSON.stringify({ replaced: true } satisfies ServingMessage))
  }

  close(error?: Error): void {
    this.#session.close(error)
  }

  #onStream(stream: YamuxStream): void {
    stream.on('error', () => {})
    const fail = (error: PeerProtocolError) => this.#session.close(error)
    if (this.#control) return void readHead(stream, (head, rest) => this.#onHead(stream, head, rest), fail)
    this.#control = stream
    // Without its control stream, a session is of no use.
    stream.on('close', () => this.#session.close())
    readLines(stream, (fields) => this.#onMessage(parseEntryMessage(fields)), fail)
  }

  #onMessage(message: EntryMessage): void {
    if ('describe' in message) this.#onDescribe(message.describe)
    else if ('forget' in message) this.#onForget(message.forget)
    else if ('ended' in message) this.#onEnded.get(message.ended)?.()
    else if ('applied' in message) this.#onApplied(message.applied, message.revision)
    else if ('probe' in message) this.#onProbe(message.probe)
    else {
      const client = this.#options.registry.clientById(message.client)
      if (!client) return void this.#relay?.passToClient(message.client, message)
      client.totals.requests += 1
      if ('request' in message) {
        client.send({ event: 'request', ...message.request })
        this.#options.onForwarded?.(client)
      } else client.send({ event: 'connection', ...message.connection })
    }
  }

  #onProbe(id: string): void {
    const client = this.#options.registry.clientById(id)
    const respond = () => {
      this.#probes.delete(id)
      this.#send(JSON.stringify({ probed: id } satisfies ServingMessage))
    }
    if (!client && this.#relay?.passToClient(id, { probe: id })) return
    if (!client) return void respond()
    if (this.#probes.has(id)) return
    this.#probes.add(id)
    client.probe().then(respond, respond)
  }

  /** The entry edge sends no further request on streams that it has. */
  #onForget(host: string): void {
    const described = this.#hosts.get(host)
    if (described) continueStreams(described)
    this.#hosts.delete(host)
    this.#relay?.forget(host)
  }

  #onDescribe(host: string): void {
    if (this.#hosts.size >= DESCRIBED_HOSTS_MAX && !this.#hosts.has(host))
      throw new PeerProtocolError(`more than ${DESCRIBED_HOSTS_MAX} hosts`)
    const described = this.#hosts.get(host) ?? {
      workspace: undefined,
      revision: 0,
      line: '',
      streams: new Set<YamuxStream>(),
    }
    this.#hosts.set(host, described)
    // The entry edge asks because it waits for an answer, also if nothing has changed.
    described.line = ''
    this.#describe(host, described)
  }

  #describe(host: string, described: DescribedHost, mayRelay = true): void {
    const { registry, quotaReachedUntil } = this.#options
    const tunnel = registry.isWithdrawn ? undefined : registry.atHost(host)
    const clients = [...(tunnel?.clients ?? [])].filter(({ isDraining }) => !isDraining)
    const isRelayed = clients.length === 0 && mayRelay && !registry.isWithdrawn
    if (isRelayed && this.#relay?.describe(host)) {
      described.line = ''
      return
    }
    if (this.#relay?.has(host)) this.#relay.forget(host)
    const message: ServingMessage =
      tunnel && clients.length > 0
        ? { tunnel: describeTunnel(tunnel, clients, quotaReachedUntil(tunnel.workspace)) }
        : { gone: host }
    const line = JSON.stringify(message)
    if (line === described.line) return
    described.line = line
    described.workspace = tunnel?.workspace
    // An entry edge that is told that the tunnel is gone has nothing to apply.
    if ('tunnel' in message && message.tunnel.revision !== described.revision) {
      described.revision = message.tunnel.revision
      this.#hold(described)
    }
    this.#send(line)
  }

  /**
   * Passes on nothing of streams with an earlier revision until the entry edge has applied this one: it may
   * send another request on them that it has authorized by the rules before. (A stream whose body is being
   * sent may continue earlier, when its buffer drains: it never carries another request.)
   */
  #hold(described: DescribedHost): void {
    if (described.streams.size === 0) return
    for (const stream of described.streams) stream.pause()
    clearTimeout(described.deadline)
    const late = new Error('The peer did not apply changed access rules in time.')
    described.deadline = setTimeout(() => this.#session.close(late), APPLY_TIMEOUT_MS).unref()
  }

  #onApplied(host: string, revision: number): void {
    const described = this.#hosts.get(host)
    this.#relay?.pass(host, { applied: host, revision })
    if (described && revision === described.revision) continueStreams(described)
  }

  #send(line: string): void {
    const control = this.#control
    if (!control?.writable) return
    control.write(`${line}\n`)
    if (control.writableLength > UNREAD_BYTES_MAX)
      this.#session.close(new Error('The peer does not read what changes.'))
  }

  #onHead(stream: YamuxStream, head: StreamHead, rest: Buffer): void {
    const { registry, traffic, quotaReachedUntil } = this.#options
    const client = registry.clientById(head.client)
    if (!client && this.#relay) {
      this.#onRelayedHead(stream, head, rest)
      return
    }
    const tunnel = registry.atHost(head.host)
    const described = this.#hosts.get(head.host)
    const isCurrent =
      traffic.mayCarry() &&
      described &&
      tunnel?.type === head.type &&
      client &&
      tunnel.clients.has(client) &&
      !registry.isReleased &&
      head.revision === tunnel.access.revision &&
      quotaReachedUntil(tunnel.workspace) === undefined
    if (!isCurrent) return void rejectForwarded(stream, head.type, 'tunnel_moved')
    if (client.active >= REQUESTS_PER_CLIENT_MAX)
      return void rejectForwarded(stream, head.type, 'tunnel_busy')
    const upstream = openStream(client)
    if (!upstream) return void rejectForwarded(stream, head.type, 'tunnel_moved')
    described.streams.add(stream)
    stream.once('close', () => described.streams.delete(stream))
    this.#countForwarded(stream)
    connectForwarded(stream, rest, tunnel, client, upstream)
  }

  #onRelayedHead(stream: YamuxStream, head: StreamHead, rest: Buffer): void {
    const { registry, traffic } = this.#options
    const mayPass = traffic.mayCarry() && !registry.isReleased
    if (mayPass && this.#relay?.connect(stream, head, rest)) this.#countForwarded(stream)
    else rejectForwarded(stream, head.type, 'tunnel_moved')
  }

  #countForwarded(stream: YamuxStream): void {
    this.#forwarded += 1
    this.#hasForwarded = true
    stream.once('close', () => {
      this.#forwarded -= 1
    })
  }
}

/** Ends what `#hold` has begun. */
function continueStreams(described: DescribedHost): void {
  if (!described.deadline) return
  clearTimeout(described.deadline)
  described.deadline = undefined
  for (const stream of described.streams) stream.resume()
}

function describeTunnel(
  { address: { host, name, url, type }, workspace, access }: Tunnel,
  clients: readonly TunnelClient[],
  quotaReachedUntil: number | undefined,
): Description {
  const { revision, clientRules, nameRules } = access
  return {
    ...{ host, name, url, type, workspace, revision, quotaReachedUntil },
    clientRules: publicRules(clientRules),
    nameRules: publicRules(nameRules),
    clients: clients.slice(0, CLIENTS_MAX).map(({ id, keyHash, target, hostHeader, idleConnections }) => ({
      ...{ id, keyHash, target, hostHeader, idleConnections },
    })),
  }
}

/** Without what the edge derives from the rules. */
const publicRules = ({ basicAuth, allowIp, hostHeader }: Description['nameRules']) => ({
  basicAuth,
  allowIp,
  hostHeader,
})

function openStream(client: TunnelClient): YamuxStream | undefined {
  try {
    return client.openStream()
  } catch {
    // The session of the client is closed.
    return undefined
  }
}
