// The load process. It prepares the requests, reports that it is ready, and starts on `go`: preparation is
// not measured.
import { echo } from './echo.ts'
import type { LoadMessage, Order, Outcome } from './jobs.ts'
import { mix } from './mixed.ts'
import { repeat } from './repeat.ts'
import { prepare } from './requests.ts'
import { transfer } from './transfer.ts'

const send = (message: LoadMessage) => process.send?.(message)

let begin: () => Promise<Outcome> = () => Promise.reject(new Error('nothing to do'))

function plan(order: Order): () => Promise<Outcome> {
  if ('transfer' in order) return () => transfer(order.transfer)
  if ('echo' in order) return () => echo(order.echo)
  if ('mixed' in order) return () => mix(order.mixed)
  const lists = prepare(order.job)
  return () => repeat(order.job, lists)
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
  begin = plan(message)
  send({ ready: true })
})
