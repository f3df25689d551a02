// The resource usage and the log of a process.
import { readFileSync } from 'node:fs'
import { errorsIn, openDescriptors } from '../support/network/broken-connections.ts'
import { collectText } from '../support/network/collect.ts'
import type { RunningProcess } from '../support/processes/process.ts'

interface Usage {
  descriptors: number
  rssMb: number
}

interface WatchedProcess {
  name: string
  /** Undefined where the system has no /proc. */
  usage(): Usage | undefined
  /** Log lines that no request may cause. */
  errors(): string[]
  isAlive(): boolean
}

export function watchProcess(name: string, { child }: RunningProcess): WatchedProcess {
  const stderr = collectText(child.stderr)
  return {
    name,
    usage() {
      const descriptors = openDescriptors(child.pid as number)
      if (descriptors === undefined) return undefined
      const rssKb = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]
      return { descriptors, rssMb: Math.round(Number(rssKb) / 1024) }
    },
    errors: () => errorsIn(stderr()),
    isAlive: () => child.exitCode === null && child.signalCode === null,
  }
}
