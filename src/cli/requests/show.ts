// `adit requests show`: a request and its response as text, as a command of curl, or as a call of fetch.

import type { Info } from '../../inspector/api.ts'
import {
  API,
  type Body,
  type Exchange,
  type Header,
  type Message,
  type MessageList,
} from '../../inspector/api.ts'
import { toCurl } from '../../inspector/text/curl.ts'
import { toFetch } from '../../inspector/text/fetch.ts'
import { oneLine } from '../../lib/net/untrusted-text.ts'
import { formatBytes } from '../bytes.ts'
import { formatDuration } from '../duration.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { bold, dim, joinLines, type Text, yellow } from '../style.ts'
import { findExchange, type Recorder } from './recorders.ts'

const FORMATS = { curl: toCurl, fetch: toFetch } as const

interface ShowInput {
  id: string | undefined
  reveal: boolean
  as: string | undefined
}

export async function show(input: ShowInput, io: Io): Promise<void> {
  const { as } = input
  if (as !== undefined && !Object.hasOwn(FORMATS, as))
    throw new UsageError(`Invalid --as "${as}" (expected ${Object.keys(FORMATS).join(' or ')}).`)
  const { recorder, exchange } = await findExchange(input.id, { reveal: input.reveal ? 'true' : undefined })
  if (as !== undefined) return showAs(FORMATS[as as keyof typeof FORMATS], recorder, exchange, io)
  const { messages } =
    exchange.messages > 0
      ? await recorder.call<MessageList>('GET', API.messages(exchange.id))
      : { messages: [] }
  io.data({ ...exchange, messageList: messages }, describe(exchange, messages))
}

async function showAs(format: typeof toCurl, recorder: Recorder, exchange: Exchange, io: Io): Promise<void> {
  const { method, path, request } = exchange
  const { tunnels } = await recorder.call<Info>('GET', API.info)
  const url = tunnels.find(({ name }) => name === exchange.tunnel)?.url || exchange.target
  const body = await recorder.read(API.body(exchange.id, 'request'))
  const text = format({ method, url, path, headers: request.headers, body })
  if (request.body.cut) io.warn('The body was not recorded as a whole.')
  if (request.headers.some(({ masked }) => masked)) io.warn('Some values are masked. --reveal shows them.')
  io.data({ text }, text)
}

export function describe(exchange: Exchange, messages: readonly Message[]): Text {
  const { request, response, problem } = exchange
  const lines: Text[] = [
    bold(`${oneLine(exchange.method)} ${oneLine(exchange.path)} HTTP/${request.httpVersion}`),
    ...headerLines(request.headers),
    ...bodyLines(request.body),
    ...headerLines(request.trailers),
    '',
  ]
  if (response)
    lines.push(
      bold(`HTTP/${response.httpVersion} ${response.status} ${oneLine(response.reason)}`),
      ...headerLines(response.headers),
      ...(messages.length > 0 ? ['', ...messages.map(messageLine)] : bodyLines(response.body)),
      ...headerLines(response.trailers),
      '',
    )
  if (problem !== undefined) lines.push(yellow(oneLine(problem)))
  lines.push(dim(timings(exchange)))
  return joinLines(lines)
}

const headerLines = (headers: readonly Header[]): Text[] =>
  headers.map(({ name, value, masked }) => [`${name}: `, masked ? dim(value) : oneLine(value)])

function bodyLines({ view, cut, viewCut, bytes, decoded, decodeProblem }: Body): Text[] {
  const notes = [
    decoded.length > 0 ? `decoded from ${decoded.join(', ')}` : '',
    decodeProblem ?? '',
    cut || viewCut ? `cut; the body has ${formatBytes(bytes)}` : '',
  ].filter((note) => note !== '')
  const note = notes.length > 0 ? [dim(`(${oneLine(notes.join('; '))})`)] : []
  if (view.type === 'empty') return note
  if (view.type === 'image') return ['', dim(`(${view.mediaType}, ${formatBytes(bytes)})`)]
  return ['', view.text, ...note]
}

const messageLine = ({ from, type, ms, text, cut, event, code, problem }: Message): Text => [
  dim(
    `${from === 'client' ? '>' : '<'} ${formatDuration(ms)} ${type}${code === undefined ? '' : ` ${code}`} `,
  ),
  event === undefined ? '' : `${oneLine(event)}: `,
  // So that none of its lines looks like another message, or like the response.
  text.replaceAll('\n', '\n  '),
  dim(`${cut ? ' (cut)' : ''}${problem === undefined ? '' : ` (${problem})`}`),
]

function timings({
  id,
  tunnel,
  startedAt,
  firstByteMs,
  lastByteMs,
  state,
  replayOf,
  edited,
}: Exchange): string {
  const times = [
    firstByteMs === undefined ? '' : `first byte after ${formatDuration(firstByteMs)}`,
    lastByteMs === undefined ? '' : `last byte after ${formatDuration(lastByteMs)}`,
  ].filter((time) => time !== '')
  const replay = replayOf === undefined ? '' : `, replay of ${replayOf}${edited ? ', edited' : ''}`
  return `${id} (${oneLine(tunnel)}), ${startedAt}, ${state}${replay}${times.map((time) => `, ${time}`).join('')}`
}
