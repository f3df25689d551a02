// Reports the port of a baseline to the benchmark, and exits with it.
import type { Server } from 'node:net'

export function listening(server: Server): void {
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('not listening')
  process.once('disconnect', () => process.exit())
  process.send?.({ port: address.port })
}
