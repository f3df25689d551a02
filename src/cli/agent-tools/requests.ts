// Recorded requests of tunnels that lead to allowed ports: those that the agent has opened, and those of
// `adit tunnel --inspect` by the same user.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  API,
  type Exchange,
  type ExchangeList,
  type ExchangeSummary,
  type Info,
  LIMITS,
  type ListQuery,
  type MessageList,
  type RecordedRequest,
  type Replayed,
  type ReplayRequest,
  type TunnelInfo,
} from '../../inspector/api.ts'
import { CommandError } from '../errors.ts'
import { findRecorders, type Query, type Recorder, withQuery } from '../requests/recorders.ts'
import type { AllowedPorts } from './allowed-ports.ts'

const POLL_MS = 250
const MESSAGES_MAX = 50
const WAITS_MAX = 4
const ID = /^[a-z0-9]{4}-\d{1,15}$/

type Filter = Omit<ListQuery, 'kind' | 'cursor' | 'limit'>

interface WaitFilter extends Pick<Filter, 'tunnel' | 'method' | 'path' | 'since'> {
  /** Id of a request: only later ones of the same tunnel. */
  readonly after?: string
}

interface Recording {
  readonly recorder: Recorder
  /** Open ones that lead to allowed ports. */
  readonly tunnels: readonly TunnelInfo[]
}

export class AgentRequests {
  readonly #ports: AllowedPorts
  readonly #reveal: 'true' | undefined
  #waits = 0

  constructor(ports: AllowedPorts, showsSecrets: boolean) {
    this.#ports = ports
    this.#reveal = showsSecrets ? 'true' : undefined
  }

  async tunnels(signal: AbortSignal): Promise<TunnelInfo[]> {
    return (await this.#recordings(signal)).flatMap(({ tunnels }) => tunnels)
  }

  /** Newest first. */
  async list(filter: Filter, limit: number, signal: AbortSignal): Promise<ExchangeSummary[]> {
    return (await this.#list(filter, limit, signal)).slice(0, limit)
  }

  /** Up to `limit` of each tunnel. */
  async #list(filter: Filter, limit: number, signal: AbortSignal): Promise<ExchangeSummary[]> {
    const found: ExchangeSummary[] = []
    for (const { recorder, tunnels } of await this.#recordings(signal))
      for (const { name } of tunnels) {
        if (filter.tunnel !== undefined && filter.tunnel !== name) continue
        const path = withQuery(API.requests, { ...filter, tunnel: name, limit: String(limit) })
        found.push(...(await recorder.call<ExchangeList>('GET', path)).requests)
      }
    return found.sort((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt))
  }

  /** With the last messages of a WebSocket or an event stream. */
  async read(id: string, signal: AbortSignal, waitS = 0): Promise<object> {
    const { recorder, exchange } = await this.#find(id, signal, { wait: String(waitS), reveal: this.#reveal })
    const messages =
      exchange.messages > 0 ? await recorder.call<MessageList>('GET', API.messages(exchange.id)) : undefined
    return {
      ...exchange,
      request: withoutImage(exchange.request),
      ...(exchange.response && { response: withoutImage(exchange.response) }),
      ...(messages && { messageList: messages.messages.slice(-MESSAGES_MAX) }),
    }
  }

  /** Resolves with the result, when it is complete or `waitS` is over. */
  async replay(
    id: string,
    toEdit: (exchange: Exchange) => Promise<ReplayRequest>,
    waitS: number,
    signal: AbortSignal,
  ): Promise<object> {
    const { recorder, exchange } = await this.#find(id, signal)
    const edit = await toEdit(exchange)
    const { request } = await recorder.call<Replayed>('POST', API.replay(exchange.id), edit)
    return this.read(request.id, signal, waitS)
  }

  /** The first that matches, without replays; undefined if there is none for so long. */
  async wait(filter: WaitFilter, timeoutS: number, signal: AbortSignal): Promise<object | undefined> {
    if (this.#waits >= WAITS_MAX)
      throw new CommandError('too_many', `${WAITS_MAX} waits are in progress. Wait for one of them.`)
    this.#waits += 1
    try {
      return await this.#wait(filter, performance.now() + timeoutS * 1000, signal)
    } finally {
      this.#waits -= 1
    }
  }

  async #wait({ after, ...filter }: WaitFilter, end: number, signal: AbortSignal) {
    const since = filter.since ?? (after === undefined ? new Date().toISOString() : undefined)
    for (;;) {
      const query = { ...filter, ...(since !== undefined && { since }) }
      const next = (await this.#list(query, LIMITS.exchanges, signal)).findLast(
        ({ id, replayOf }) => replayOf === undefined && (after === undefined || isLater(id, after)),
      )
      const leftMs = end - performance.now()
      // A WebSocket or an event stream may stay open for long.
      if (next)
        return this.read(next.id, signal, next.kind === 'http' ? Math.max(0, Math.ceil(leftMs / 1000)) : 0)
      if (leftMs <= 0) return undefined
      await sleep(Math.min(POLL_MS, leftMs), undefined, { signal })
    }
  }

  /** Programs that end meanwhile are left out. */
  async #recordings(signal: AbortSignal): Promise<Recording[]> {
    const recorders = await findRecorders(signal).catch((error: CommandError) => {
      if (error.code === 'not_recording') return []
      throw error
    })
    const recordings = recorders.map(async (recorder): Promise<Recording[]> => {
      const info = await recorder.call<Info>('GET', API.info).catch(() => undefined)
      const tunnels = info?.tunnels.filter((tunnel) => this.#isVisible(tunnel, info.tunnels)) ?? []
      return tunnels.length > 0 ? [{ recorder, tunnels }] : []
    })
    return (await Promise.all(recordings)).flat()
  }

  /** A list is selected by name, so another tunnel of that name must be allowed, too. */
  #isVisible({ name }: TunnelInfo, all: readonly TunnelInfo[]): boolean {
    const isAllowed = (tunnel: TunnelInfo) => tunnel.name !== name || this.#ports.allows(tunnel.target)
    return name !== '' && all.every(isAllowed)
  }

  async #find(id: string, signal: AbortSignal, query: Query = {}) {
    const recordings = ID.test(id) ? await this.#recordings(signal) : []
    for (const { recorder } of recordings) {
      const path = withQuery(API.request(id), query)
      const exchange = await recorder.call<Exchange>('GET', path).catch((error: CommandError) => {
        if (error.code !== 'not_found') throw error
      })
      if (exchange && this.#ports.allows(exchange.target)) return { recorder, exchange }
    }
    throw new CommandError(
      'not_found',
      'There is no such request. Only the last ones are kept, until their tunnel is closed: call list_requests.',
    )
  }
}

const splitId = (id: string): [program: string, number: number] => {
  const [program = '', number] = id.split('-')
  return [program, Number(number)]
}

function isLater(id: string, after: string): boolean {
  const [[program, number], [afterProgram, afterNumber]] = [splitId(id), splitId(after)]
  return program === afterProgram && number > afterNumber
}

/** Without the bytes of an image, which are of no use as text. */
function withoutImage(part: RecordedRequest): object {
  const { view } = part.body
  if (view.type !== 'image') return part
  return { ...part, body: { ...part.body, view: { type: view.type, mediaType: view.mediaType } } }
}
