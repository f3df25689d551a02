// Controls the load process, and measures the CPU time of the server's processes meanwhile.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Job, LoadMessage, Order, Outcome } from './load/jobs.ts'
import { cpuSeconds } from './processes.ts'

interface Loaded extends Outcome {
  perSecond: number
  /** CPU seconds of the server; undefined without /proc. */
  cpuS: number | undefined
  /** CPU seconds per second of the run. */
  busy: number | undefined
}

export interface Load {
  run(job: Job, ...serverPids: number[]): Promise<Loaded>
  carryOut(order: Order, ...serverPids: number[]): Promise<Loaded>
  stop(): void
}

export function startLoad(): Load {
  let child: ChildProcess | undefined
  const process = () => {
    child ??= fork(fileURLToPath(new URL('load/process.ts', import.meta.url)))
    return child
  }

  async function send(message: Order | 'go'): Promise<LoadMessage> {
    const received = once(process(), 'message')
    process().send(message)
    const [reply] = (await received) as [LoadMessage]
    if ('failed' in reply) throw new Error(`load: ${reply.failed}`)
    return reply
  }

  async function carryOut(order: Order, ...serverPids: number[]): Promise<Loaded> {
    await send(order)
    const cpuBefore = cpuSeconds(...serverPids)
    const began = performance.now()
    const reply = await send('go')
    const cpuAfter = cpuSeconds(...serverPids)
    if (!('outcome' in reply)) throw new Error('the load process sent no outcome')
    const cpuS = cpuBefore === undefined || cpuAfter === undefined ? undefined : cpuAfter - cpuBefore
    const busy = cpuS === undefined ? undefined : cpuS / ((performance.now() - began) / 1000)
    const { outcome } = reply
    return { ...outcome, perSecond: outcome.completed / outcome.seconds, cpuS, busy }
  }

  return {
    carryOut,
    run: (job, ...pids) => carryOut({ job }, ...pids),
    stop: () => child?.kill('SIGKILL'),
  }
}
