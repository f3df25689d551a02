// A database of its own for each test, on either engine, gone when the test ends.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { atEnd, type Test } from './cleanup.ts'

export const engines = ['sqlite', 'postgres'] as const
export type Engine = (typeof engines)[number]

/** For every server of the tests; PostgreSQL asks for one. */
export const SECRET = 'only-for-tests-0123456789abcdefghijklmn'

/** The value for ADIT_DATABASE_URL. */
export async function createDatabase(t: Test, engine: Engine): Promise<string> {
  if (engine === 'sqlite') return `sqlite:${join(createFolder(t), 'adit.db')}`
  const server = process.env.TEST_POSTGRES_URL
  if (!server) throw new Error('Run the tests through "npm test": it starts PostgreSQL.')
  const name = `adit_test_${randomBytes(8).toString('hex')}`
  await onServer(server, `create database ${name}`)
  atEnd(t, () => onServer(server, `drop database if exists ${name} with (force)`))
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

export function createFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'adit-test-'))
  atEnd(t, () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function onServer(server: string, statement: string): Promise<void> {
  const client = new pg.Client(server)
  await client.connect()
  await client.query(statement)
  await client.end()
}
