// The worker processes of `adit serve` with ADIT_WORKERS.
import { readFileSync } from 'node:fs'

/** None if the primary has ended. */
export function workersOf(primary: number): number[] {
  const children = readProcess(`${primary}/task/${primary}/children`)
  return children.split(' ').filter(Boolean).map(Number).filter(isWorker)
}

/**
 * Not a child that does not run its program yet: the primary waits for that, so a test that stopped the child
 * would stop both.
 */
const isWorker = (pid: number) => readProcess(`${pid}/environ`).includes('NODE_UNIQUE_ID=')

function readProcess(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, 'utf8')
  } catch {
    return ''
  }
}
