// Requests as bytes, prepared before the measurement.
import { readFileSync } from 'node:fs'
import type { Prepared } from 'autocannon'
import type { Job, Keys, RequestSpec, Requests } from './jobs.ts'

/** autocannon's wrap-around to the start of a list is expensive. */
const LIST_LENGTH_MIN = 64

/** One list for each connection. */
export const prepare = (job: Job): Prepared[][] =>
  job.draw.kind === 'keys' ? prepareKeys(job, job.draw) : prepareRequests(job, job.draw)

function prepareRequests({ url, connections }: Job, { requests, each }: Requests): Prepared[][] {
  const prepared = requests.map((spec) => prepareOne(url, spec))
  return Array.from({ length: connections }, (_, index) => {
    const start = index % prepared.length
    const own =
      each === 'one' ? [prepared[start] as Prepared] : [...prepared.slice(start), ...prepared.slice(0, start)]
    return Array.from({ length: Math.ceil(LIST_LENGTH_MIN / own.length) }, () => own).flat()
  })
}

const files = new Map<string, string[]>()

function prepareKeys({ url, connections }: Job, { file, lines, from, count, path, headers }: Keys) {
  const known = files.get(file) ?? readFileSync(file, 'utf8').trimEnd().split('\n')
  files.set(file, known)
  const lists: Prepared[][] = Array.from({ length: connections }, () => [])
  for (let index = 0; index < count; index += 1) {
    const body = `{"key":"${known[(from + index) % lines]}"}`
    const spec: RequestSpec = { method: 'POST', path, headers, body }
    lists[index % connections]?.push({ requestBuffer: bytesOf(url, spec, body) })
  }
  return lists
}

export function prepareOne(url: string, spec: RequestSpec): Prepared {
  if (!spec.body?.includes('{n}')) return { requestBuffer: bytesOf(url, spec, spec.body ?? '') }
  const parts = spec.body.split('{n}')
  return {
    get requestBuffer() {
      grown += 1
      return bytesOf(url, spec, parts.join(String(grown)))
    },
  }
}

/** Across all runs, so that every report has larger values than the last. */
let grown = 1_000

function bytesOf(url: string, { method, path, headers: given }: RequestSpec, body: string): Buffer {
  const { host = url.slice('http://'.length), ...headers } = given
  let head = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n`
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`
  if (method === 'POST')
    head += `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
  return Buffer.from(`${head}\r\n${body}`)
}
