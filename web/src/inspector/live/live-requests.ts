// The recorded requests, as they happen: the list, and then its changes. Connects again when the program is
// back.
import {
  API,
  type ExchangeList,
  type ExchangeSummary,
  type Info,
  LIMITS,
  type LiveEvents,
  type TunnelInfo,
} from '../../../../src/inspector/api.ts'
import { getAccess, setConnectionLost } from '../access.ts'
import { call, InspectorError, send } from '../api.ts'
import { readEvents, type StreamEvent } from './event-stream.ts'

const RECONNECT_MS = 1_500
/** Events that arrive together are shown together. */
const PUBLISH_AFTER_MS = 16

export interface LiveState {
  readonly status: 'connecting' | 'live' | 'disconnected'
  /** Why it is disconnected, if the program seems to run. */
  readonly problem?: string | undefined
  /** The newest first. */
  readonly requests: readonly ExchangeSummary[]
  readonly tunnels: readonly TunnelInfo[]
  readonly info: Info | undefined
}

/** The number in an id grows. */
const order = ({ id }: ExchangeSummary) => Number(id.split('-')[1])

class LiveRequests {
  #state: LiveState = { status: 'connecting', requests: [], tunnels: [], info: undefined }
  #byId = new Map<string, ExchangeSummary>()
  #listeners = new Set<() => void>()
  #stop = new AbortController()
  #publishTimer: ReturnType<typeof setTimeout> | undefined

  readonly subscribe = (notify: () => void): (() => void) => {
    this.#listeners.add(notify)
    return () => this.#listeners.delete(notify)
  }

  readonly getState = (): LiveState => this.#state

  start(): void {
    this.#stop = new AbortController()
    setConnectionLost(false)
    this.#set({ status: 'connecting' })
    void this.#run(this.#stop.signal)
  }

  stop(): void {
    this.#stop.abort()
  }

  /** A request that a response told of, before its event. */
  add(request: ExchangeSummary): void {
    if (this.#byId.has(request.id)) return
    this.#byId.set(request.id, request)
    this.#publish()
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const error = await this.#follow(signal).catch((error: Error) => error)
      if (signal.aborted) return
      setConnectionLost(this.#state.info !== undefined)
      // Another program on the port may respond with anything.
      const isRejected = error instanceof InspectorError && error.code === 'too_many'
      this.#set({ status: 'disconnected', problem: isRejected ? error.message : undefined })
      if (getAccess() === 'ended') return
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS))
    }
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { body } = await send(API.events, { signal })
    if (!body) return
    const events = readEvents(body)
    // Changes are applied to the list that was loaded after they could be seen, so none is missed.
    const [list, info] = await Promise.all([
      call<ExchangeList>(API.requests, { signal, query: { limit: LIMITS.pageSize } }),
      call<Info>(API.info, { signal }),
    ])
    this.#byId = new Map(list.requests.map((request) => [request.id, request]))
    setConnectionLost(false)
    this.#set({ status: 'live', info, tunnels: info.tunnels })
    this.#publish()
    for await (const event of events) this.#apply(event)
  }

  #apply({ event, data }: StreamEvent): void {
    const value = JSON.parse(data)
    switch (event as keyof LiveEvents) {
      case 'requests':
        for (const request of (value as LiveEvents['requests']).requests) this.#byId.set(request.id, request)
        this.#publishSoon()
        break
      case 'removed':
        for (const id of (value as LiveEvents['removed']).ids) this.#byId.delete(id)
        this.#publishSoon()
        break
      case 'cleared':
        this.#byId.clear()
        this.#publish()
        break
      case 'tunnels':
        this.#set({ tunnels: (value as LiveEvents['tunnels']).tunnels })
    }
  }

  #publishSoon(): void {
    this.#publishTimer ??= setTimeout(() => this.#publish(), PUBLISH_AFTER_MS)
  }

  #publish(): void {
    clearTimeout(this.#publishTimer)
    this.#publishTimer = undefined
    this.#set({ requests: [...this.#byId.values()].sort((a, b) => order(b) - order(a)) })
  }

  #set(change: Partial<LiveState>): void {
    this.#state = { ...this.#state, ...change }
    for (const notify of this.#listeners) notify()
  }
}

export const live = new LiveRequests()
