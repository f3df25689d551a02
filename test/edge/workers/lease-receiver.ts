// Another process, which says how much of a lease is left.
import process from 'node:process'
import { receiveLease } from '../../../src/edge/workers/worker-lease.ts'
import type { Moment } from '../../../src/lib/credentials/lease.ts'

process.on('message', (lease: Moment) => {
  const { monotonic } = receiveLease(lease)
  process.send?.({ leftMs: monotonic - performance.now() })
})
process.send?.('started')
