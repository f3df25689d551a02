// Responses that are lists of any length, sent in slices. A slice is produced when the one before was taken, so a client
// that does not read costs a slice of memory; one that fails breaks the connection, before the JSON is whole.
import { Readable } from 'node:stream'
import type { Serialise } from './serialise.ts'

/** `first` and each of `more` have the shape of the response: an object with one member, a list that is not empty. */
export const streamList = (serialise: Serialise, first: object, more: AsyncIterable<object>): Readable =>
  Readable.from(textsOf(serialise, first, more))

async function* textsOf(serialise: Serialise, first: object, more: AsyncIterable<object>) {
  const text = serialise(first)
  const itemsAt = text.indexOf('[') + 1
  const itemsEnd = -']}'.length
  yield text.slice(0, itemsEnd)
  const slices = more[Symbol.asyncIterator]()
  try {
    for (;;) {
      const items = await inTurn(async () => {
        const { done, value } = await slices.next()
        return done ? undefined : serialise(value).slice(itemsAt, itemsEnd)
      })
      if (items === undefined) break
      yield `,${items}`
    }
  } finally {
    await slices.return?.()
  }
  yield ']}'
}

/** Slices are produced one at a time in this process, however many lists are read, and other events go before the next. */
let turns: Promise<unknown> = Promise.resolve()

function inTurn<T>(produce: () => Promise<T>): Promise<T> {
  const produced = turns.then(produce)
  turns = produced.then(otherEvents, otherEvents)
  return produced
}

const otherEvents = () => new Promise((resolve) => setImmediate(resolve))
