// Parses server-sent events. Unlike EventSource it also yields ids without an event, and comments: both show
// that the stream is alive and complete.

/** One block of the stream; a comment is a block without fields. */
export interface ServerEvent {
  id?: string
  event?: string
  data?: string
}

/** Far above any event of the control plane; protects memory from other servers. */
const BLOCK_CHARS_MAX = 256 * 1024

export async function* serverEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    // A CR at the end of a chunk stays in `rest` until its LF arrives.
    const text = (rest + decoder.decode(chunk, { stream: true })).replaceAll('\r\n', '\n')
    const blocks = text.split('\n\n')
    rest = blocks.pop() as string
    if (rest.length > BLOCK_CHARS_MAX) throw new Error('An event of the stream is too long.')
    for (const block of blocks) yield parseBlock(block)
  }
}

function parseBlock(block: string): ServerEvent {
  const parsed: ServerEvent = {}
  for (const line of block.split('\n')) {
    const [, name, value = ''] = /^(id|event|data): ?(.*)$/.exec(line) ?? []
    if (name === 'data' && parsed.data !== undefined) parsed.data += `\n${value}`
    else if (name) parsed[name as keyof ServerEvent] = value
  }
  return parsed
}
