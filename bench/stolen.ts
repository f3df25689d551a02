// Processor time that a virtual machine needed and its host gave to others.
import { readFileSync } from 'node:fs'

interface Times {
  used: number
  stolen: number
}

/** Returns a function for the share of the needed time since then; 0 where the system does not count it. */
export function measureStolen(): () => number {
  const before = readTimes()
  return () => {
    const after = readTimes()
    const stolen = after.stolen - before.stolen
    return stolen === 0 ? 0 : stolen / (stolen + after.used - before.used)
  }
}

function readTimes(): Times {
  try {
    const [, user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, stolen = 0] = readFileSync(
      '/proc/stat',
      'utf8',
    )
      .slice(0, 1_000)
      .split(/\s+/)
      .map(Number)
    return { used: user + nice + system + irq + softirq, stolen }
  } catch {
    return { used: 0, stolen: 0 }
  }
}
