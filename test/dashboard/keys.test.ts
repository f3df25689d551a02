// The list of API keys in the dashboard: lineages, search and filters.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { engines } from '../support/databases.ts'
import { insertRevokedKeys } from '../support/many-keys.ts'
import { serve } from '../support/server.ts'
import { addMember } from '../support/users.ts'

interface Listed {
  id: string
  lastFour: string | null
  state: string
  successor: { id: string; lastFour: string; state: string } | null
  predecessors: Listed[]
}

for (const engine of engines)
  test(`${engine}: keys are found by label, last characters and ID, and listed below their successors`, async (t) => {
    const server = await serve(t, { engine })
    const ann = await addMember(server, 'Ann', 'owner')
    const keys = '/workspaces/acme/keys'
    const create = async (label: string) => (await ann.post(keys, { label })).json
    const rotate = async (id: string, overlap: string) =>
      (await ann.post(`${keys}/${id}/rotate`, { overlap })).json
    const list = async (query: Record<string, string> = {}): Promise<Listed[]> =>
      (await ann.get(`${keys}?${new URLSearchParams(query)}`)).json.keys
    /** Ids, with those of their predecessors in parentheses. */
    const found = async (query: Record<string, string>) =>
      (await list(query)).map(({ id, predecessors }) => [id, ...predecessors.map((key) => key.id)])

    const first = await create('CI of 100%_done')
    const second = await rotate(first.id, '7d')
    const third = await rotate(second.id, '24h')
    const other = await create('laptop')
    assert.equal(third.predecessor.id, second.id)

    await t.test('a lineage is one item, the successor first', async () => {
      const chain = [third.id, second.id, first.id]
      assert.deepEqual(await found({ state: 'active' }), [[other.id], chain, [server.key.id]])
      assert.deepEqual(await found({}), [[other.id], chain, [server.key.id]])
      const [, lineage] = await list()
      assert.equal(lineage?.lastFour, third.token.slice(-4))
      assert.equal(lineage?.successor, null)
      assert.deepEqual(lineage?.predecessors[0]?.successor, {
        id: third.id,
        lastFour: third.token.slice(-4),
        state: 'active',
      })
    })

    await t.test('search', async () => {
      const chain = [third.id, second.id, first.id]
      assert.deepEqual(await found({ search: 'ci OF' }), [chain])
      assert.deepEqual(await found({ search: '100%_' }), [chain], 'not as wildcards')
      assert.deepEqual(await found({ search: 'c%' }), [])
      assert.deepEqual(await found({ search: second.token.slice(-4) }), [[second.id]])
      assert.deepEqual(await found({ search: ` ${first.id} ` }), [[first.id]])
      assert.deepEqual(await found({ search: other.id.slice(0, -1) }), [[other.id]])
      assert.deepEqual(await found({ search: other.id.slice(-6) }), [], 'not in the middle of an ID')
      assert.equal((await ann.get(`${keys}?search=${'x'.repeat(81)}`)).status, 400)
      assert.equal((await ann.get(`${keys}?search=%00`)).status, 400)
    })

    await t.test('an inactive successor does not hide the key that it replaced', async () => {
      await ann.remove(`${keys}/${third.id}`)
      assert.deepEqual(await found({ search: 'CI', state: 'active' }), [[second.id, first.id]])
      assert.deepEqual(await found({ search: 'CI', state: 'revoked' }), [[third.id]])
      assert.deepEqual(await found({ search: 'CI' }), [[third.id], [second.id, first.id]])
    })

    await t.test('an active key names the active key that replaces it, also indirectly', async () => {
      const successorOf = async (id: string) => {
        const [key] = await list({ search: id })
        return key?.successor && [key.successor.id, key.successor.state]
      }
      const old = await create('chain')
      const revoked = await rotate(old.id, '7d')
      const active = await rotate(revoked.id, 'none')
      assert.deepEqual(await successorOf(old.id), [active.id, 'active'])
      assert.equal((await ann.post(`${keys}/${old.id}/rotate`, { overlap: '1h' })).status, 409)
      assert.deepEqual(await successorOf(revoked.id), [active.id, 'active'])
      await ann.remove(`${keys}/${active.id}`)
      assert.deepEqual(await successorOf(old.id), [active.id, 'revoked'])
      const next = await rotate(old.id, '1h')
      assert.deepEqual(await successorOf(old.id), [next.id, 'active'])
      assert.equal(await successorOf(next.id), null)
    })

    await t.test('pages have each key once, also with many keys', async () => {
      await insertRevokedKeys(server.services.store, server.workspace.id, 1_000)
      const ids: string[] = []
      const query = new URLSearchParams({ limit: '200' })
      for (let next: string | null = ''; next !== null; ) {
        if (next) query.set('cursor', next)
        const page: { keys: Listed[]; next: string | null } = (await ann.get(`${keys}?${query}`)).json
        ids.push(...page.keys.flatMap((key) => [key.id, ...key.predecessors.map(({ id }) => id)]))
        next = page.next
      }
      assert.equal(ids.length, 1_009)
      assert.equal(new Set(ids).size, ids.length)
      assert.deepEqual(
        (await list({ search: 'laptop' })).map(({ lastFour }) => lastFour),
        [other.token.slice(-4)],
      )
      assert.equal((await list({ search: 'may be 0999' }))[0]?.lastFour, null)
    })
  })
