// Runs one command after the other, each as in a process of its own: with its environment, its standard
// streams, and an end that comes when nothing is left open. Started by process.ts.
import { Readable, Writable } from 'node:stream'
import { isBundleCurrent } from '../../../scripts/bundled.js'
import { until } from '../until.ts'

export interface CommandRequest {
  args: string[]
  /** All of its environment, except for the variables that every process needs. */
  env: Record<string, string>
  input: string
}

const source = isBundleCurrent() ? '../../../dist/main.js' : '../../../src/main.ts'
const { main }: { main: (words: string[]) => Promise<number> } = await import(source)
const { PATH = '', HOME = '' } = process.env
const EXIT_TIMEOUT_MS = 30_000

process.on('message', async ({ args, env, input }: CommandRequest) => {
  const open = process.getActiveResourcesInfo().length
  const [stdout, stderr] = [collect('stdout'), collect('stderr')]
  Object.defineProperty(process, 'stdin', { value: Readable.from([input]), configurable: true })
  process.env = { PATH, HOME, ...env }
  const code = await main(args)
  // A process exits only when no connection, file or timer keeps it alive.
  await until(
    `nothing of adit ${args.join(' ')} is left open`,
    () => process.getActiveResourcesInfo().length <= open,
    EXIT_TIMEOUT_MS,
  )
  process.send?.({ code, signal: null, stdout: stdout(), stderr: stderr() })
})

/** Replaces a standard stream. Returns what was written to it. */
function collect(name: 'stdout' | 'stderr'): () => string {
  const written: Buffer[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      written.push(chunk)
      done()
    },
  })
  Object.defineProperty(process, name, { value: stream, configurable: true })
  return () => Buffer.concat(written).toString()
}
