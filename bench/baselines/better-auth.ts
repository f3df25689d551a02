// better-auth's API keys behind Fastify. Its settings are those that its documentation advises for
// production: keys hashed (the default), its own migration's indexes, clean-up deferred, rate limit off, no
// mail and no telemetry. It keeps keys in the database, as Adit does; the other storage it offers is a cache
// beside it, which still writes each use to the database, or a store without a database at all.
import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { apiKey } from '@better-auth/api-key'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import fastify from 'fastify'
import { listening } from './listening.ts'

const { path, file, keys } = JSON.parse(process.argv[2] as string) as {
  path: string
  file: string
  keys: number
}

const database = new DatabaseSync(path)
database.exec('pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on')

const auth = betterAuth({
  database,
  // It would warn about the schema that is created below.
  logger: { disabled: true },
  baseURL: 'http://127.0.0.1',
  secret: 'only-for-the-bench-0123456789abcdefghij',
  telemetry: { enabled: false },
  rateLimit: { enabled: false },
  advanced: { backgroundTasks: { handler: (task) => void task } },
  plugins: [apiKey({ rateLimit: { enabled: false }, deferUpdates: true })],
})

const { runMigrations } = await getMigrations(auth.options)
await runMigrations()
seed()

const server = fastify()
server.post('/verify', (request) => {
  const { key } = request.body as { key: string }
  return auth.api.verifyApiKey({ body: { key } })
})
await server.listen({ port: 0, host: '127.0.0.1' })
listening(server.server)

function seed(): void {
  const now = new Date().toISOString()
  const insert = database.prepare(`
    insert into apikey
      (id, configId, name, start, key, referenceId, enabled, rateLimitEnabled, requestCount,
        createdAt, updatedAt)
    values (?, 'default', ?, ?, ?, ?, 1, 0, 0, ?, ?)`)
  const lines = readFileSync(file, 'utf8').split('\n', keys)
  database.exec('begin')
  for (const [index, key] of lines.entries())
    insert.run(
      `key-${index}`,
      `key ${index}`,
      key.slice(0, 6),
      hash('sha256', key, 'base64url'),
      `user-${index % 10_000}`,
      now,
      now,
    )
  database.exec('commit; analyze')
}
