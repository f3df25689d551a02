/** What the stream has sent so far. Several streams are mixed as they arrive. */
export function collectText(...streams: (NodeJS.ReadableStream | null | undefined)[]): () => string {
  let text = ''
  for (const stream of streams)
    stream?.on('data', (chunk) => {
      text += chunk
    })
  return () => text
}
