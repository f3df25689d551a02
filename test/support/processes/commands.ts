// Commands that a test runs one after the other, and what it expects of them.
import assert from 'node:assert/strict'
import type { Test } from '../cleanup.ts'
import { createMigratedDatabase, type Engine } from '../databases/create.ts'
import { type Ended, run } from './process.ts'

/** `adit admin` on a database of its own. */
export async function createOperator(
  t: Test,
  engine: Engine = 'sqlite',
  settings: Record<string, string> = {},
) {
  const database = await createMigratedDatabase(t, engine)
  const env = { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'silent', ...settings }
  const adit = (...args: string[]) => run(t, ['admin', ...args], env)
  /** The result of a command that succeeds. */
  const json = async (...args: string[]) => readJson(await adit(...args, '--json'))
  return { env, adit, json }
}

function readJson({ code, stdout, stderr }: Ended) {
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

/** The command has printed this error, and nothing else. */
export function assertFailed(
  { code, stdout, stderr }: Ended,
  exitCode: number,
  message: RegExp,
  what = '',
): void {
  assert.deepEqual([code, stdout], [exitCode, ''], `${what} ${stderr}`)
  assert.match(stderr, message, what)
}
