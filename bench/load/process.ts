// The load process. It prepares the requests, reports that it is ready, and starts on `go`: preparation is
// not measured.

import type { LoadMessage, Order, Outcome } from './jobs.ts'
import { runAtMaxLoad } from './max-load.ts'
import { pace } from './pace.ts'
import { prepare } from './requests.ts'

const send = (message: LoadMessage) => process.send?.(message)

let begin: () => Promise<Outcome> = () => Promise.reject(new Error('nothing to do'))

process.once('disconnect', () => process.exit())
process.on('message', (message: Order | 'go') => {
  if (message === 'go') {
    begin().then(
      (outcome) => send({ outcome }),
      (error: Error) => send({ failed: error.message }),
    )
    return
  }
  if ('job' in message) {
    const lists = prepare(message.job)
    begin = () => runAtMaxLoad(message.job, lists)
  } else {
    begin = () => pace(message.pace)
  }
  send({ ready: true })
})
