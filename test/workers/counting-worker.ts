// A worker that counts the messages it gets, and reports the number when it is asked for metrics.
import process from 'node:process'
import type { Message } from '../../src/workers/messages.ts'

let count = 0
process.on('message', ({ kind }: Message) => {
  if (kind === 'adit:metrics-request') process.send?.(count)
  else count += 1
})
process.send?.('started')
