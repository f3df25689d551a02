// What two responses have in common, and what not.
import type { Body, Exchange, Header } from '../../../../src/inspector/api.ts'
import { type DiffLine, diffLines } from './line-diff.ts'

const statusLine = ({ response }: Exchange) =>
  response ? `${response.status} ${response.reason}`.trim() : 'No response'

const headerLines = (headers: readonly Header[] = []) =>
  headers
    .map(({ name, value }) => `${name.toLowerCase()}: ${value}`)
    .sort()
    .join('\n')

function bodyText(body: Body | undefined): string {
  if (!body || body.view.type === 'empty') return ''
  return body.view.type === 'image' ? `${body.view.mediaType}, ${body.bytes} bytes` : body.view.text
}

const isSameImage = (a: Body | undefined, b: Body | undefined) =>
  a?.view.type !== 'image' || b?.view.type !== 'image' || a.view.base64 === b.view.base64

/** The order and the case of header names do not matter. */
export function compareResponses(a: Exchange, b: Exchange) {
  const bodyA = a.response?.body
  const bodyB = b.response?.body
  const body = diffLines(bodyText(bodyA), bodyText(bodyB))
  return {
    status: diffLines(statusLine(a), statusLine(b)),
    headers: diffLines(headerLines(a.response?.headers), headerLines(b.response?.headers)),
    body: isSameImage(bodyA, bodyB) ? body : asChanged(body),
    /** Whether there is more of the bodies than what was compared. */
    isPartial: [bodyA, bodyB].some((each) => each && (each.cut || each.viewCut)),
    hasMasked: [a, b].some(({ response }) => response?.headers.some(({ masked }) => masked)),
  }
}

/** Images with equal descriptions, whose bytes differ. */
const asChanged = (lines: readonly DiffLine[]): DiffLine[] =>
  lines.flatMap(({ type, text }) =>
    type === 'same'
      ? [
          { type: 'removed', text },
          { type: 'added', text },
        ]
      : [{ type, text }],
  )
