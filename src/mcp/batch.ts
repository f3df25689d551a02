// Batches of MCP messages in one HTTP request: limited in length, run sequentially, with a limit on all
// results.
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server'
import type { RunCall } from './server.ts'

/** Protocol versions since 2025-06-18 have no batches at all. */
const MESSAGES_MAX = 10
/** The size as sent: each result as text and as structured content. A single call stays well below it. */
const RESULT_BYTES_MAX = 1 * 1024 * 1024

/** The error in a batch as a whole; undefined if it is valid or not a batch. */
export function batchError(message: unknown): string | undefined {
  if (!Array.isArray(message)) return undefined
  if (message.length > MESSAGES_MAX)
    return `Too many messages in the batch (at most ${MESSAGES_MAX}). Send the others in further requests.`
  // The SDK responds once for each id, so calls with the same id would continue after the response.
  const ids = message
    .filter((item) => item?.method !== undefined && item.id !== undefined)
    .map(({ id }) => id)
  return new Set(ids).size < ids.length ? 'Each request in a batch needs a unique id.' : undefined
}

/** Rejects calls before they run, not after: the result of every call that ran is returned. */
export function createBatchRunner(): RunCall {
  let previous: Promise<unknown> = Promise.resolve()
  let bytes = 0
  return (call) => {
    const queued = previous.then(async () => {
      if (bytes > RESULT_BYTES_MAX)
        throw new ProtocolError(
          ProtocolErrorCode.InvalidRequest,
          'The results of this batch are too large. This call was not made: send it in a separate request.',
        )
      const result = await call()
      for (const part of result.content) if (part.type === 'text') bytes += 2 * Buffer.byteLength(part.text)
      return result
    })
    previous = queued.catch(() => undefined)
    return queued
  }
}
