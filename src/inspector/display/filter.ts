// Which exchanges a list has.
import type { ListQuery } from '../api.ts'
import { findHeader, type RecordedExchange, type RecordedPart } from '../store/exchange.ts'
import { decodeBody, decodeText } from './body-view.ts'
import type { HeaderMask } from './mask.ts'

type Test = (exchange: RecordedExchange) => boolean

/** The message is for the user. */
export class InvalidQuery extends Error {
  override name = 'InvalidQuery'
}

const contains = (text: string, part: string) => text.toLowerCase().includes(part.toLowerCase())

/** Everything but `search`, which takes longer. */
export function toTest(query: ListQuery): Test {
  const { tunnel, method, status, path, kind, since } = query
  const tests: Test[] = []
  if (tunnel !== undefined) tests.push((exchange) => exchange.tunnel.name === tunnel)
  if (method !== undefined) tests.push((exchange) => exchange.method.toLowerCase() === method.toLowerCase())
  if (path !== undefined) tests.push((exchange) => contains(exchange.path, path))
  if (kind !== undefined) tests.push((exchange) => exchange.kind === kind)
  if (status !== undefined) tests.push(toStatusTest(status))
  if (since !== undefined) {
    const time = Date.parse(since)
    if (Number.isNaN(time)) throw new InvalidQuery('Invalid "since" (expected a time in ISO 8601).')
    tests.push(({ startedAt }) => startedAt.getTime() >= time)
  }
  return (exchange) => tests.every((test) => test(exchange))
}

function toStatusTest(text: string): Test {
  if (text === 'none') return ({ response }) => response === undefined
  const [, digit, from, to = from] = /^(?:([1-5])xx|(\d{3})(?:-(\d{3}))?)$/i.exec(text) ?? []
  if (digit === undefined && from === undefined)
    throw new InvalidQuery('Invalid "status" (expected 404, 4xx, 400-499 or none).')
  const [lowest, highest] =
    digit === undefined ? [Number(from), Number(to)] : [+digit * 100, +digit * 100 + 99]
  return ({ response }) => response !== undefined && response.status >= lowest && response.status <= highest
}

/** Looks for the text in everything that is shown without revealing masked values. */
export async function matchesSearch(
  exchange: RecordedExchange,
  text: string,
  mask: HeaderMask,
): Promise<boolean> {
  const { request, response, messages } = exchange
  if (contains(`${exchange.method} ${exchange.path}`, text)) return true
  const parts = response ? [request, response] : [request]
  for (const { headers, trailers } of parts)
    for (const { name, value, masked } of mask.describe([...headers, ...trailers], false))
      if (contains(masked ? name : `${name}: ${value}`, text)) return true
  if (messages.some(({ content }) => contains(toText(content), text))) return true
  for (const part of parts) if (contains(await bodyText(part), text)) return true
  return false
}

const toText = (content: string | Buffer) =>
  typeof content === 'string' ? content : content.toString('latin1')

async function bodyText(part: RecordedPart): Promise<string> {
  if (part.body.content.length === 0) return ''
  const { content } = await decodeBody(part)
  const type = findHeader(part.headers, 'content-type') ?? ''
  return decodeText(content, type, true) ?? content.toString('latin1')
}
