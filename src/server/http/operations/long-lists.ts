// Responses that are lists of any length, streamed in slices with backpressure: a slice is read when the one
// before was sent. If a slice fails, the connection is aborted, so that the client sees truncated JSON and
// not a short list. If a node has too many lists, the workspace with the most loses its oldest one.
import { addAbortSignal, Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { LimitedSlots, type Slot } from '../../../lib/shared-slots.ts'
import { Fault } from '../../domain/fault.ts'
import type { Serialize } from './serialize.ts'

/** Lists in progress. A slow client occupies about 1 MiB of memory and the socket. */
const LIMITS = { perOwner: 4, total: 64 }
/** A client that has not read the list by then is disconnected. */
const LIST_MS_MAX = 120_000
const RETRY_AFTER_S = 2

/** A list that is being sent. */
interface OpenList<T> extends AsyncIterableIterator<T> {
  /** Aborted if the list has to make room for one of another workspace. */
  readonly displaced: AbortSignal
}

export class LongLists {
  /** The owners of the slots are workspaces. */
  readonly #open = new LimitedSlots(LIMITS)
  readonly #tooManyMessage: string

  constructor(tooManyMessage: string) {
    this.#tooManyMessage = tooManyMessage
  }

  /**
   * Returns the same slices. The list counts against its workspace until it ends, fails or is returned.
   * `authorize` is called before each slice, and throws if the caller may not read on.
   */
  open<T>(workspaceId: string, slices: AsyncIterator<T>, authorize: () => Promise<unknown>): OpenList<T> {
    const { displaced, release } = this.#acquire(workspaceId)
    return {
      displaced,
      [Symbol.asyncIterator]() {
        return this
      },
      async next() {
        await authorize()
        const result = await slices.next()
        if (result.done) release()
        return result
      },
      async return() {
        release()
        await slices.return?.()
        return { value: undefined, done: true }
      },
    }
  }

  #acquire(workspaceId: string): Slot {
    const slot = this.#open.acquire(workspaceId)
    if (typeof slot !== 'string') return slot
    throw new Fault('rate_limited', { message: this.#tooManyMessage, retryAfterS: RETRY_AFTER_S })
  }
}

/** `first` and each of `more` have the shape of the response: an object with one nonempty list. */
export function streamList(serialize: Serialize, first: object, more: AsyncIterable<object>): Readable {
  const text = serialize(first)
  const slices = more[Symbol.asyncIterator]()
  const itemsAt = text.indexOf('[') + 1
  const serializeItems = (slice: object) => serialize(slice).slice(itemsAt, -']}'.length)
  // An array that is emptied, so that the first page is not kept in memory while the rest is read.
  const opening = [text.slice(0, -']}'.length)]
  async function* renderList() {
    yield opening.pop() as string
    yield* renderSlices(slices, (slice) => `,${serializeItems(slice)}`)
    yield ']}'
  }
  return toStream(renderList(), slices)
}

export function streamFile(chunks: AsyncIterable<string>): Readable {
  const slices = chunks[Symbol.asyncIterator]()
  return toStream(
    renderSlices(slices, (chunk) => chunk),
    slices,
  )
}

function toStream(texts: AsyncIterable<string>, slices: AsyncIterator<unknown>): Readable {
  const stream = Readable.from(texts)
  if ('displaced' in slices) addAbortSignal((slices as OpenList<unknown>).displaced, stream)
  const timeout = setTimeout(
    () => stream.destroy(new Error('the client reads the list too slowly')),
    LIST_MS_MAX,
  )
  // The event also comes if the stream is destroyed before anything was read.
  stream.once('close', () => {
    clearTimeout(timeout)
    void slices.return?.()
  })
  return stream
}

async function* renderSlices<T>(slices: AsyncIterator<T>, render: (slice: T) => string) {
  for (;;) {
    const text = await runSerially(async () => {
      const { done, value } = await slices.next()
      return done ? undefined : render(value)
    })
    if (text === undefined) return
    yield text
  }
}

let queue: Promise<unknown> = Promise.resolve()

/** Renders one slice at a time in this process, and lets the event loop run before the next. */
function runSerially<T>(work: () => Promise<T>): Promise<T> {
  const result = queue.then(work)
  const yieldToEventLoop = () => setImmediate()
  queue = result.then(yieldToEventLoop, yieldToEventLoop)
  return result
}
