// The child processes of a server (Linux).
import { readFileSync } from 'node:fs'

/** None if the process has ended. */
export const listChildren = (pid: number): number[] =>
  readProcess(`${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)

/** The workers of `adit serve` with ADIT_WORKERS. */
export const workersOf = (primary: number): number[] => listChildren(primary).filter(isWorker)

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
