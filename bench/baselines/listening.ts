// Tells the bench where a peer listens. A peer whose bench is gone goes too.
import type { Server } from 'node:http'

export function listening(server: Server): void {
  const address = server.address()
  if (typeof address !== 'object' || !address) throw new Error('not listening')
  process.once('disconnect', () => process.exit())
  process.send?.({ port: address.port })
}
