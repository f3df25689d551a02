// Writes a HAR document in parts: all bodies together may not fit into memory.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { decodeBody, decodeText } from '../display/body-view.ts'
import { describeHeads } from '../display/describe.ts'
import type { HeaderMask } from '../display/mask.ts'
import { findHeader, type RecordedExchange, type RecordedPart } from '../store/exchange.ts'
import { HAR_END, type HarContent, harStart, toHarEntry } from './har-entry.ts'

const EMPTY: HarContent = { bytes: 0, text: '', isBase64: false, mimeType: 'x-unknown' }

export async function sendHar(
  response: ServerResponse,
  exchanges: readonly RecordedExchange[],
  options: { mask: HeaderMask; isRevealed: boolean; version: string },
): Promise<void> {
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-disposition': 'attachment; filename="requests.har"',
  })
  const closed = new AbortController()
  response.once('close', () => closed.abort())
  let before = harStart(options.version)
  for (const exchange of exchanges) {
    if (closed.signal.aborted) return
    // Streams of the tunnel get their turn between exchanges.
    await nextTurn()
    const entry = await describeEntry(exchange, options)
    const isWritten = response.write(before + JSON.stringify(entry))
    before = ','
    if (!isWritten) await once(response, 'drain', { signal: closed.signal }).catch(() => undefined)
  }
  response.end(before === ',' ? HAR_END : before + HAR_END)
}

async function describeEntry(
  exchange: RecordedExchange,
  { mask, isRevealed }: { mask: HeaderMask; isRevealed: boolean },
) {
  const described = describeHeads(exchange, mask, isRevealed)
  const bodies = {
    request: await readContent(exchange.request, mask, isRevealed),
    response: exchange.response ? await readContent(exchange.response, mask, isRevealed) : EMPTY,
  }
  const { tunnel, messages } = exchange
  return toHarEntry(described, tunnel.url || tunnel.target, bodies, messages)
}

async function readContent(part: RecordedPart, mask: HeaderMask, isRevealed: boolean): Promise<HarContent> {
  const { content, isCut } = await decodeBody(part)
  const type = findHeader(part.headers, 'content-type')
  const text = decodeText(content, type ?? '', isCut || part.body.isCut)
  return {
    bytes: content.length,
    text: text ?? content.toString('base64'),
    isBase64: text === undefined,
    mimeType: mask.find(part.headers, 'content-type', isRevealed) ?? EMPTY.mimeType,
  }
}
