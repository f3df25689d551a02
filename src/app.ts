// The composition root: world → directory → HTTP. Only this file and world.ts construct; all others are given.
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { createDirectory } from './directory/directory.ts'
import { startUses } from './directory/uses.ts'
import type { World } from './domain/context.ts'
import { mountDocs } from './http/docs.ts'
import { drain } from './http/drain.ts'
import { mountOps } from './http/ops.ts'
import { describePublic, mountPublic } from './http/public.ts'
import { createServer } from './http/server.ts'

export interface Running {
  /** Where it listens. */
  url: string
  /** Finishes what is in flight, writes what is pending, and lets go of the database. */
  stop(): Promise<void>
}

export async function startServer(config: Config, world: World, log: Logger): Promise<Running> {
  const { store, clock } = world
  const uses = startUses(store, clock, (error) =>
    log.warn({ err: error }, 'could not write when keys were used'),
  )
  const directory = createDirectory(store, uses)
  let stopping = false

  const isStopping = () => stopping
  const server = createServer({ log, isStopping, https: config.baseUrl?.startsWith('https:') ?? false })
  mountOps(server, { isStopping, ping: store.ping })
  const document = describePublic(config.variant, config.baseUrl)
  mountPublic(server, { world, directory, document, ...config })
  await mountDocs(server, document, config.baseUrl)

  async function stop(): Promise<void> {
    stopping = true
    await drain(server)
    const { lost } = await uses.stop()
    if (lost > 0) log.error({ keys: lost }, 'could not write when keys were last used')
    await store.close()
  }

  try {
    await server.listen({ host: config.host, port: config.port })
  } catch (error) {
    await stop()
    throw error
  }
  const { port } = server.server.address() as AddressInfo
  return { url: `http://${printable(config.host)}:${port}`, stop }
}

/** An address that works when pasted: not the wildcard, and IPv6 in brackets. */
function printable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}
