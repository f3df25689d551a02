// Exports of the audit log while nodes and exports are killed.
import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { caller, type TestResponse } from '../../support/api/server.ts'
import { createFolder, createMigratedDatabase, engines } from '../../support/databases/create.ts'
import { run, startProcess, startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

interface Entry {
  id: string
  cursor: string
  action: string
  target: { id: string }
}

const parse = (lines: string): Entry[] =>
  lines
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

for (const engine of engines)
  test(`${engine}: the exported audit log equals what was done, across kill -9 of nodes and exports`, async (t) => {
    const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, engine), ADIT_LOG_LEVEL: 'silent' }
    const output = join(createFolder(t), 'audit.ndjson')
    await run(t, ['admin', 'workspace', 'create', 'acme'], env)
    const first = JSON.parse(
      (await run(t, ['admin', 'key', 'create', '--workspace', 'acme', '--json'], env)).stdout,
    )

    const created = new Set([first.id])
    const revoked = new Set<string>()
    /** Without a response: both outcomes are correct. */
    const inDoubt = new Set<string>()
    let unacknowledgedCreations = 0
    /** The complete lines that exports have printed; the next one continues after them. */
    let printed = ''
    let killed = false

    const nodes = await Promise.all(
      Array.from({ length: engine === 'postgres' ? 2 : 1 }, () => startServing(t, env)),
    )
    const attempt = async (act: () => Promise<TestResponse>): Promise<TestResponse | undefined> => {
      try {
        const response = await act()
        return response.status === 503 ? undefined : response
      } catch (error) {
        assert.ok(killed, `failed before the kill: ${error}`)
        return undefined
      }
    }
    const writers = nodes.map(async ({ api }) => {
      const call = caller(api, first.token)
      while (!killed) {
        const key = await attempt(() => call('POST', '/tokens', {}))
        if (!key) {
          unacknowledgedCreations += 1
          continue
        }
        assert.equal(key.status, 201)
        created.add(key.json.id)
        if (created.size % 3 !== 0) continue
        inDoubt.add(key.json.id)
        const revocation = await attempt(() => call('DELETE', `/tokens/${key.json.id}`))
        if (!revocation) continue
        assert.equal(revocation.status, 200)
        inDoubt.delete(key.json.id)
        revoked.add(key.json.id)
      }
    })

    const since = () => {
      const last = parse(printed).at(-1)?.cursor
      return last === undefined ? [] : ['--since', last]
    }
    const readSize = () => statSync(output, { throwIfNoEntry: false })?.size ?? 0
    // Exports to a pipe and to a file are killed when their first output arrives.
    for (let number = 0; number < 2; number += 1) {
      const toPipe = startProcess(t, ['admin', 'audit', 'export', ...since()], env)
      toPipe.child.stdout?.once('data', () => toPipe.child.kill('SIGKILL'))
      const { stdout } = await toPipe.ended
      printed += stdout.slice(0, stdout.lastIndexOf('\n') + 1)
      const size = readSize()
      const toFile = startProcess(t, ['admin', 'audit', 'export', '--output', output], env)
      await until('the export has begun to write', () => readSize() > size)
      await toFile.stop('SIGKILL')
    }
    await until('keys are created', () => created.size >= 30)
    killed = true
    for (const { child } of nodes) child.kill('SIGKILL')
    await Promise.all([...writers, ...nodes.map(({ ended }) => ended)])
    // As if the export had been killed while it wrote a line.
    appendFileSync(output, '{"cursor":"17')

    printed += (await run(t, ['admin', 'audit', 'export', ...since()], env)).stdout
    assert.equal((await run(t, ['admin', 'audit', 'export', '--output', output], env)).code, 0)
    for (const entries of [parse(printed), parse(readFileSync(output, 'utf8'))]) {
      const ids = entries.map(({ id }) => id)
      assert.equal(new Set(ids).size, ids.length, 'no entry is repeated')
      const targets = (action: string) =>
        entries.filter((entry) => entry.action === action).map(({ target }) => target.id)
      const creations = targets('key.created')
      assert.equal(new Set(creations).size, creations.length)
      for (const id of created) assert.ok(creations.includes(id), `the creation of ${id} is missing`)
      assert.ok(creations.length <= created.size + unacknowledgedCreations)
      const revocations = targets('key.revoked')
      assert.equal(new Set(revocations).size, revocations.length)
      for (const id of revoked) assert.ok(revocations.includes(id), `the revocation of ${id} is missing`)
      for (const id of revocations) assert.ok(revoked.has(id) || inDoubt.has(id), id)
    }
    t.diagnostic(
      `${created.size} creations and ${revoked.size} revocations acknowledged, ${unacknowledgedCreations} creations not`,
    )
  })
