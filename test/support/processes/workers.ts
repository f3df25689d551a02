// The worker processes of `adit serve` with ADIT_WORKERS.
import { existsSync, readFileSync } from 'node:fs'

/** None if the primary has ended. */
export function workersOf(primary: number): number[] {
  if (!existsSync(`/proc/${primary}/task/${primary}/children`)) return []
  const children = readFileSync(`/proc/${primary}/task/${primary}/children`, 'utf8')
  return children.split(' ').filter(Boolean).map(Number)
}
