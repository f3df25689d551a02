// The calls of one HTTP request: a batch is short, its calls run one after another, and its results have a limit in total.
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js'
import type { RunCall } from './server.ts'

/** Protocol versions since 2025-06-18 have no batches at all. */
const MESSAGES_MAX = 10
/** Counted as they are sent: as text and once more structured. One call alone stays well below it. */
const RESULT_BYTES_MAX = 1 * 1024 * 1024

/** What is wrong with a batch as a whole; undefined for a good one, and for what is not a batch. */
export function batchError(message: unknown): string | undefined {
  if (!Array.isArray(message)) return undefined
  if (message.length > MESSAGES_MAX)
    return `A batch has at most ${MESSAGES_MAX} messages. Send the others in further requests.`
  // The SDK responds once for each id, so calls that share one would go on after the response.
  const ids = message.filter((one) => one?.method !== undefined && one.id !== undefined).map(({ id }) => id)
  return new Set(ids).size < ids.length ? 'Each request of a batch needs an id of its own.' : undefined
}

/** Refuses calls before they run, not after: whatever a call has changed is reported. */
export function createBatchRunner(): RunCall {
  let previous: Promise<unknown> = Promise.resolve()
  let bytes = 0
  return (call) => {
    const result = previous.then(async () => {
      if (bytes > RESULT_BYTES_MAX)
        throw new McpError(
          ErrorCode.InvalidRequest,
          'The results of this batch are too large; this call was not made. Send it in a request of its own.',
        )
      const called = await call()
      for (const part of called.content) if (part.type === 'text') bytes += 2 * Buffer.byteLength(part.text)
      return called
    })
    previous = result.catch(() => undefined)
    return result
  }
}
