// Sends as many writes as a limit allows.
const CONCURRENCY = 20

/** Sends requests with some concurrency until one is rejected with 429; returns how many succeeded. */
export async function sendUntilLimited(send: () => Promise<{ status: number; headers: Headers }>) {
  let succeeded = 0
  let rejected: Headers | undefined
  const worker = async () => {
    while (!rejected) {
      const { status, headers } = await send()
      if (status === 429) rejected = headers
      else succeeded += 1
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  return { succeeded, retryAfter: rejected?.get('retry-after') }
}
