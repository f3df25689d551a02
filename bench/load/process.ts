// The process that the load comes from. It prepares, says that it is ready, and fires when told to: what preparing costs is
// not measured.

import type { Order, Outcome, Word } from './jobs.ts'
import { fire } from './max-load.ts'
import { pace } from './pace.ts'
import { prepare } from './requests.ts'

const say = (word: Word) => process.send?.(word)

let begin: () => Promise<Outcome> = () => Promise.reject(new Error('nothing to do'))

process.once('disconnect', () => process.exit())
process.on('message', (message: Order | 'go') => {
  if (message === 'go') {
    begin().then(
      (outcome) => say({ outcome }),
      (error: Error) => say({ failed: error.message }),
    )
    return
  }
  if ('job' in message) {
    const lists = prepare(message.job)
    begin = () => fire(message.job, lists)
  } else {
    begin = () => pace(message.pace)
  }
  say({ ready: true })
})
