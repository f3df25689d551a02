// Maximum throughput, measured by wrk if it is installed: it takes a fraction of the processor time of
// autocannon, which the server gets instead. It checks the status of each response, but not its body.
import { execFile, spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Prepared } from 'autocannon'
import type { Job, Outcome } from './jobs.ts'

const SCRIPT = fileURLToPath(new URL('wrk.lua', import.meta.url))
const TIMEOUT = '60s'

/** Undefined if it is not installed. */
export const wrkVersion = (): string | undefined =>
  /^wrk \S*?(\d+\.\d+\.\d+)/.exec(spawnSync('wrk', ['-v'], { encoding: 'utf8' }).stdout ?? '')?.[1]

export function describeLoad(): string {
  const version = wrkVersion()
  if (version === undefined) return 'load by autocannon'
  return `load by wrk ${version}, and by autocannon where requests are counted or differ`
}

/** Whether wrk can send it: for whole seconds, and the same requests again and again. */
export const suitsWrk = ({ draw, until }: Job): boolean =>
  'seconds' in until &&
  Number.isInteger(until.seconds) &&
  (draw.kind === 'keys' || (draw.requests.length === 1 && !draw.requests[0]?.body?.includes('{n}')))

export async function runWithWrk({ url, connections, until }: Job, lists: Prepared[][]): Promise<Outcome> {
  if (!('seconds' in until)) throw new Error('wrk sends requests for a duration')
  const file = join(tmpdir(), `adit-bench-requests-${process.pid}`)
  const parts = new Set(lists.flat())
    .values()
    .flatMap(({ requestBuffer }) => [`${requestBuffer.length}\n`, requestBuffer])
  writeFileSync(file, Buffer.concat(parts.map((part) => Buffer.from(part)).toArray()), { mode: 0o600 })
  const duration = ['--duration', `${until.seconds}s`, '--timeout', TIMEOUT]
  const args = [
    '--threads',
    '1',
    '--connections',
    String(connections),
    ...duration,
    '--script',
    SCRIPT,
    url,
    file,
  ]
  try {
    const { stdout } = await promisify(execFile)('wrk', args)
    const { failed, ...measured } = JSON.parse(/^\{.*\}$/m.exec(stdout)?.[0] ?? '{"failed":-1}')
    if (failed !== 0) throw new Error(`bad responses: ${stdout}`)
    return { ...measured, perSecond: measured.completed / measured.seconds }
  } finally {
    rmSync(file, { force: true })
  }
}
