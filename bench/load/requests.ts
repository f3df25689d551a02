// Requests as bytes, prepared before the measurement.
import { readFileSync } from 'node:fs'
import type { Job, Keys, RequestSpec, Requests } from './jobs.ts'

/** The requests of a connection, in turn and over again. */
export type RequestList = (index: number) => Buffer

/** One list for each connection. */
export const prepare = (job: Job): RequestList[] =>
  job.draw.kind === 'keys' ? prepareKeys(job, job.draw) : prepareRequests(job, job.draw)

function prepareRequests({ url, connections }: Job, { requests, each }: Requests): RequestList[] {
  const prepared = requests.map((spec) => prepareOne(url, spec))
  const at = (index: number) => (prepared[index % prepared.length] as () => Buffer)()
  return Array.from(
    { length: connections },
    (_, connection) => (index) => at(each === 'one' ? connection : connection + index),
  )
}

const files = new Map<string, string[]>()

function prepareKeys({ url, connections }: Job, draw: Keys): RequestList[] {
  const { file, lines, from, count, path, headers } = draw
  const keys = files.get(file) ?? readFileSync(file, 'utf8').trimEnd().split('\n')
  files.set(file, keys)
  const lists: Buffer[][] = Array.from({ length: connections }, () => [])
  for (let index = 0; index < count; index += 1) {
    const body = `{"key":"${keys[(from + index) % lines]}"}`
    lists[index % connections]?.push(encodeRequest(url, { method: 'POST', path, headers }, body))
  }
  return lists.map((list) => (index) => list[index % list.length] as Buffer)
}

function prepareOne(url: string, spec: RequestSpec): () => Buffer {
  const { body = '' } = spec
  if (!body.includes('{n}')) {
    const bytes = encodeRequest(url, spec, body)
    return () => bytes
  }
  const parts = body.split('{n}')
  return () => encodeRequest(url, spec, parts.join(String(++lastValue)))
}

/** Across all runs, so that every report has larger values than the last. */
let lastValue = 1_000

function encodeRequest(
  url: string,
  { method, path, headers: specHeaders }: RequestSpec,
  body: string,
): Buffer {
  const { host = url.slice('http://'.length), ...headers } = specHeaders
  let head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n`
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`
  if (method === 'POST')
    head += `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
  return Buffer.from(`${head}\r\n${body}`)
}
