// What the kernel knows about a process (Linux).
import { readFileSync } from 'node:fs'

/** The most memory that it has used. */
export const peakBytes = (pid: number) =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

/** CPU time, in hundredths of a second. */
export function cpuTicks(pid: number): number {
  const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const [user, system] = fields.split(' ').slice(11)
  return Number(user) + Number(system)
}
