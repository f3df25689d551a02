// A real PgBouncer.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from '../cleanup.ts'
import { freePort, isListening } from '../processes/ports.ts'
import { startProgram } from '../processes/program.ts'
import { until } from '../until.ts'
import { createFolder } from './create.ts'

export const hasPgbouncer = spawnSync('pgbouncer', ['--version']).status === 0

const isRoot = process.getuid?.() === 0

/** Returns the URL of the same database through PgBouncer. */
export async function startPgbouncer(t: Test, database: string, settings: string[]): Promise<string> {
  const server = new URL(database)
  const port = await freePort()
  const file = join(createFolder(t), 'pgbouncer.ini')
  const target = `host=${server.hostname} port=${server.port || 5432} user=${decodeURIComponent(server.username)}`
  const password = server.password && ` password=${decodeURIComponent(server.password)}`
  const listener = [
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
  ]
  const lines = ['[databases]', `* = ${target}${password}`, '[pgbouncer]', ...listener, ...settings, '']
  writeFileSync(file, lines.join('\n'))
  // It does not run as root; it reads the file before it changes the user.
  startProgram(t, 'pgbouncer', [...(isRoot ? ['--user', 'nobody'] : []), file])
  await until('PgBouncer listens', () => isListening(port))
  server.host = `127.0.0.1:${port}`
  return server.href
}
