// Controls the load process, and measures the CPU time of the server meanwhile.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Job, LoadMessage, Order, Outcome, Pace } from './load/jobs.ts'
import { cpuSecondsOf } from './processes.ts'

export interface Loaded extends Outcome {
  /** CPU seconds of the server per second of the run; undefined without /proc. */
  busy: number | undefined
}

export interface Load {
  run(job: Job, serverPid: number): Promise<Loaded>
  pace(pace: Pace, serverPid: number): Promise<Loaded>
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

  async function carryOut(order: Order, serverPid: number): Promise<Loaded> {
    await send(order)
    const cpuBefore = cpuSecondsOf(serverPid)
    const began = performance.now()
    const reply = await send('go')
    const cpuAfter = cpuSecondsOf(serverPid)
    if (!('outcome' in reply)) throw new Error('the load process sent no outcome')
    const busy =
      cpuBefore === undefined || cpuAfter === undefined
        ? undefined
        : (cpuAfter - cpuBefore) / ((performance.now() - began) / 1000)
    return { ...reply.outcome, busy }
  }

  return {
    run: (job, serverPid) => carryOut({ job }, serverPid),
    pace: (pace, serverPid) => carryOut({ pace }, serverPid),
    stop: () => child?.kill('SIGKILL'),
  }
}
