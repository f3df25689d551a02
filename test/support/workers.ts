// The worker processes of `adit serve` with ADIT_WORKERS.
import { readFileSync } from 'node:fs'

export function workersOf(primary: number): number[] {
  const children = readFileSync(`/proc/${primary}/task/${primary}/children`, 'utf8')
  return children.split(' ').filter(Boolean).map(Number)
}
