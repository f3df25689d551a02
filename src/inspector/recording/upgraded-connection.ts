// A recorded connection after an upgrade: the messages of a WebSocket. Of other protocols nothing is kept.
import { findHeader, type RecordedExchange } from '../store/exchange.ts'
import { MessageBudget } from './message-budget.ts'
import { type MessageReader, type NewMessage, readMessages } from './websocket-messages.ts'

export class UpgradedConnection {
  readonly #exchange: RecordedExchange
  #client: MessageReader | undefined
  #server: MessageReader | undefined

  /** `now` returns the time at which the bytes passed that are read. */
  constructor(exchange: RecordedExchange, now: () => number) {
    this.#exchange = exchange
    const { request, response } = exchange
    if (findHeader(request.headers, 'upgrade')?.toLowerCase() !== 'websocket') return
    exchange.kind = 'websocket'
    const extensions = findHeader(response?.headers ?? [], 'sec-websocket-extensions') ?? ''
    const budget = new MessageBudget(now)
    const handler = {
      onFrame: () => budget.addFrame(),
      onInflated: (bytes: number) => budget.addInflated(bytes),
      onMessage: (message: NewMessage) => exchange.addMessage({ ...message, ms: exchange.msSince(now()) }),
    }
    this.#client = readMessages('client', extensions, handler)
    this.#server = readMessages('server', extensions, handler)
  }

  /** What is kept of messages that have not arrived completely. */
  get keptBytes(): number {
    return (this.#client?.keptBytes ?? 0) + (this.#server?.keptBytes ?? 0)
  }

  /** Throws if these are not frames. */
  fromClient(received: Buffer): void {
    this.#exchange.clientMessageBytes += received.length
    this.#client?.push(received)
  }

  fromServer(received: Buffer): void {
    this.#exchange.serverMessageBytes += received.length
    this.#server?.push(received)
  }

  /** Nothing more is kept. */
  release(): void {
    this.#client = undefined
    this.#server = undefined
  }
}
