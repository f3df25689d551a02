// The load process, seen from the bench: orders go out, outcomes come back, and meanwhile somebody's processor time is read.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Job, Order, Outcome, Pace, Word } from './load/jobs.ts'
import { cpuSecondsOf } from './processes.ts'

export interface Loaded extends Outcome {
  /** Processor seconds of the server for each second of the run; undefined where the system does not tell. */
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

  async function say(message: Order | 'go'): Promise<Word> {
    const answer = once(process(), 'message')
    process().send(message)
    const [word] = (await answer) as [Word]
    if ('failed' in word) throw new Error(`load: ${word.failed}`)
    return word
  }

  async function carryOut(order: Order, serverPid: number): Promise<Loaded> {
    await say(order)
    const cpuBefore = cpuSecondsOf(serverPid)
    const began = performance.now()
    const word = await say('go')
    const cpuAfter = cpuSecondsOf(serverPid)
    if (!('outcome' in word)) throw new Error('the load process did not tell its outcome')
    const busy =
      cpuBefore === undefined || cpuAfter === undefined
        ? undefined
        : (cpuAfter - cpuBefore) / ((performance.now() - began) / 1000)
    return { ...word.outcome, busy }
  }

  return {
    run: (job, serverPid) => carryOut({ job }, serverPid),
    pace: (pace, serverPid) => carryOut({ pace }, serverPid),
    stop: () => child?.kill('SIGKILL'),
  }
}
