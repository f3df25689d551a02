// Server-sent events out of a stream of bytes. What a browser's EventSource keeps to itself is needed here: an id that
// comes without an event, and comments, because both tell that nothing was missed.

/** One block of the stream; a comment is a block without any field. */
export interface ServerEvent {
  id?: string
  event?: string
  data?: string
}

/** Far beyond any event of ours: whoever sends more is no control plane. */
const BLOCK_CHARS_MAX = 64 * 1024

export async function* serverEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    // Unified at once, so that blocks end in one way. A CR whose LF is still to come is left for the next time.
    const text = (rest + decoder.decode(chunk, { stream: true })).replaceAll('\r\n', '\n')
    const blocks = text.split('\n\n')
    rest = blocks.pop() as string
    if (rest.length > BLOCK_CHARS_MAX) throw new Error('An event of the stream is too long.')
    for (const block of blocks) yield readBlock(block)
  }
}

function readBlock(block: string): ServerEvent {
  const read: ServerEvent = {}
  for (const line of block.split('\n')) {
    const [, name, value = ''] = /^(id|event|data): ?(.*)$/.exec(line) ?? []
    if (name === 'data' && read.data !== undefined) read.data += `\n${value}`
    else if (name) read[name as keyof ServerEvent] = value
  }
  return read
}
