// Collects the garbage of another Node process, by its inspector: memory in use can be compared only then.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'

/** Settings of a process whose garbage is to be collected. */
export const INSPECTABLE = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }

/** `logFile` has the standard error of the process, in which Node prints the address of the inspector. */
export async function collectGarbage(logFile: string): Promise<void> {
  const url = /^Debugger listening on (ws:\S+)$/m.exec(readFileSync(logFile, 'utf8'))?.[1]
  if (!url) throw new Error('the process has no inspector')
  const inspector = new WebSocket(url)
  await once(inspector, 'open')
  const collected = once(inspector, 'message')
  inspector.send(JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' }))
  await collected
  inspector.close()
}
