// kill -9 during creations and revocations. test/faults does this repeatedly.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { caller, type TestResponse } from '../../support/api/server.ts'
import { createMigratedDatabase, engines } from '../../support/databases/create.ts'
import { run, startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

const WRITERS = 6

for (const engine of engines)
  test(`${engine}: kill -9 while keys are created and revoked loses nothing acknowledged`, async (t) => {
    const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, engine), ADIT_LOG_LEVEL: 'silent' }
    await run(t, ['admin', 'workspace', 'create', 'acme'], env)
    const { stdout } = await run(t, ['admin', 'key', 'create', '--workspace', 'acme', '--json'], env)
    const { token } = JSON.parse(stdout)

    const created = new Map<string, string>()
    const revoked = new Set<string>()
    /** Requested, but without a response: both outcomes are correct. */
    const inDoubt = new Set<string>()
    const serving = await startServing(t, env)
    const call = caller(serving.api, token)
    let killed = false
    const attempt = async (act: () => Promise<TestResponse>): Promise<TestResponse | undefined> => {
      try {
        return await act()
      } catch (error) {
        assert.ok(killed, `failed before the kill: ${error}`)
        return undefined
      }
    }
    const writers = Array.from({ length: WRITERS }, async (_, writer) => {
      for (let index = 0; !killed; index++) {
        const key = await attempt(() =>
          call('POST', '/tokens', { headers: { 'idempotency-key': `${writer}-${index}` } }),
        )
        if (!key) return
        // On a busy machine the database may respond too late: not acknowledged either.
        if (key.status === 503) continue
        assert.equal(key.status, 201)
        created.set(key.json.id, key.json.token)
        if (index % 3 !== 0) continue
        inDoubt.add(key.json.id)
        const revocation = await attempt(() => call('DELETE', `/tokens/${key.json.id}`))
        if (!revocation) return
        if (revocation.status === 503) continue
        assert.equal(revocation.status, 200)
        inDoubt.delete(key.json.id)
        revoked.add(key.json.id)
      }
    })
    const written = until('keys are created', () => created.size >= 40)
    // Fails at once if a writer does.
    await Promise.race([written, ...writers])
    serving.child.kill('SIGKILL')
    killed = true
    await Promise.all(writers)
    assert.equal((await serving.ended).signal, 'SIGKILL')

    const { api } = await startServing(t, env)
    const callRestarted = caller(api, token)
    const listed: { id: string; revokedAt: string | null }[] = (await callRestarted('GET', '/tokens')).json
      .tokens
    const states = new Map(listed.map((key) => [key.id, key.revokedAt]))
    for (const [id, secret] of created) {
      assert.ok(states.has(id), `${id} was acknowledged and is gone`)
      if (inDoubt.has(id)) continue
      const { status } = await callRestarted('GET', '/workspace', { key: secret })
      assert.equal(status, revoked.has(id) ? 401 : 200, id)
      assert.equal(states.get(id) !== null, revoked.has(id), id)
    }
    t.diagnostic(`${created.size} keys and ${revoked.size} revocations acknowledged, none lost`)
  })
