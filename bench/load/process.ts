// The load process. It prepares the requests, reports that it is ready, and starts on `go`: preparation is
// not measured.

import type { LoadMessage, Order, Outcome } from './jobs.ts'
import { runAtMaxLoad } from './max-load.ts'
import { pace } from './pace.ts'
import { repeat } from './repeat.ts'
import { prepare } from './requests.ts'
import { transfer } from './transfer.ts'
import { runWithWrk, suitsWrk, wrkVersion } from './wrk.ts'

const send = (message: LoadMessage) => process.send?.(message)

const hasWrk = wrkVersion() !== undefined
let begin: () => Promise<Outcome> = () => Promise.reject(new Error('nothing to do'))

function toRun(order: Order): () => Promise<Outcome> {
  if ('pace' in order) return () => pace(order.pace)
  if ('repeat' in order) return () => repeat(order.repeat)
  if ('transfer' in order) return () => transfer(order.transfer)
  const { job } = order
  const lists = prepare(job)
  return hasWrk && suitsWrk(job) ? () => runWithWrk(job, lists) : () => runAtMaxLoad(job, lists)
}

process.once('disconnect', () => process.exit())
process.on('message', (message: Order | 'go') => {
  if (message === 'go') {
    begin().then(
      (outcome) => send({ outcome }),
      (error: Error) => send({ failed: error.message }),
    )
    return
  }
  begin = toRun(message)
  send({ ready: true })
})
