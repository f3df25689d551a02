// The stream of events that the page reads. Changes are collected, so that busy tunnels cost little.
import type { ServerResponse } from 'node:http'
import { LIMITS, type LiveEvents } from '../api.ts'
import { describeSummary } from '../display/describe.ts'
import type { HeaderMask } from '../display/mask.ts'
import type { RecordedExchange } from '../store/exchange.ts'
import type { ExchangeStore } from '../store/exchange-store.ts'
import { ApiFailure } from './responses.ts'

const COLLECT_MS = 100
const KEEP_ALIVE_MS = 15_000
const UNREAD_BYTES_MAX = 2 * 1024 * 1024

export class LiveEventStreams {
  readonly #mask: HeaderMask
  readonly #readers = new Set<ServerResponse>()
  readonly #changed = new Set<RecordedExchange>()
  #removed: string[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(store: ExchangeStore, mask: HeaderMask) {
    this.#mask = mask
    store.listen({
      onChange: (exchange) => this.#collect(() => this.#changed.add(exchange)),
      onEvict: (id) => this.#collect(() => this.#removed.push(id)),
      onClear: () => {
        this.#changed.clear()
        this.#removed = []
        this.#send('cleared', {})
      },
      onTunnels: () => this.#send('tunnels', { tunnels: store.tunnels }),
    })
  }

  add(response: ServerResponse): void {
    if (this.#readers.size >= LIMITS.eventStreams)
      throw new ApiFailure('too_many', 'Too many pages are open. Close some of them.')
    this.#readers.add(response)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const timer = setInterval(() => this.#write(response, ':\n\n'), KEEP_ALIVE_MS).unref()
    response.once('close', () => {
      clearInterval(timer)
      this.#readers.delete(response)
    })
    this.#write(response, ':\n\n')
  }

  #collect(add: () => void): void {
    if (this.#readers.size === 0) return
    add()
    this.#timer ??= setTimeout(() => this.#flush(), COLLECT_MS).unref()
  }

  #flush(): void {
    this.#timer = undefined
    const kept = [...this.#changed].filter(({ isEvicted }) => !isEvicted)
    if (kept.length > 0)
      this.#send('requests', { requests: kept.map((each) => describeSummary(each, this.#mask)) })
    if (this.#removed.length > 0) this.#send('removed', { ids: this.#removed })
    this.#changed.clear()
    this.#removed = []
  }

  #send<E extends keyof LiveEvents>(event: E, data: LiveEvents[E]): void {
    if (this.#readers.size === 0) return
    const text = `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
    for (const response of this.#readers) this.#write(response, text)
  }

  #write(response: ServerResponse, text: string): void {
    response.write(text)
    if (response.writableLength > UNREAD_BYTES_MAX) response.destroy()
  }
}
