// The stream of changes that an edge reads.
import assert from 'node:assert/strict'

export async function openChangeStream(url: string, token: string, headers = {}) {
  const response = await fetch(`${url}/edge/v1/key-changes`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
  })
  assert.equal(response.status, 200)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  /** Reads until the text matches, then closes the stream. */
  const next = async (pattern: RegExp) => {
    let text = ''
    while (!pattern.test(text)) {
      const { value, done } = await reader.read()
      assert.ok(!done, text)
      text += decoder.decode(value, { stream: true })
    }
    await reader.cancel()
    return text
  }
  return { next }
}

export async function readPosition(url: string, token: string): Promise<string> {
  const text = await (await openChangeStream(url, token)).next(/^id: .*\n\n/m)
  return /^id: (.*)$/m.exec(text)?.[1] as string
}
