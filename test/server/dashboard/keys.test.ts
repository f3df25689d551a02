// The list of API keys in the dashboard: lineages, search and filters.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serveWithOwner } from '../../support/accounts/users.ts'
import { engines } from '../../support/databases/create.ts'
import { insertRevokedKeys } from '../../support/databases/many-keys.ts'
import { recordQueries } from '../../support/databases/recorded-queries.ts'
import { pluck } from '../../support/pluck.ts'

interface Listed {
  id: string
  lastFour: string
  state: string
  successor: { id: string; lastFour: string } | null
  predecessors: Listed[]
}

for (const engine of engines)
  test(`${engine}: keys are found by label, last characters and ID, and listed below their successors`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
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
      const findSuccessor = async (id: string) => (await list({ search: id }))[0]?.successor?.id
      const old = await create('chain')
      const revoked = await rotate(old.id, '7d')
      const active = await rotate(revoked.id, 'none')
      assert.deepEqual(await findSuccessor(old.id), active.id)
      assert.equal((await ann.post(`${keys}/${old.id}/rotate`, { overlap: '1h' })).status, 409)
      assert.deepEqual(await findSuccessor(revoked.id), active.id)
      await ann.remove(`${keys}/${active.id}`)
      assert.deepEqual(await findSuccessor(old.id), undefined)
      const next = await rotate(old.id, '1h')
      assert.deepEqual(await findSuccessor(old.id), next.id)
      assert.equal(await findSuccessor(next.id), undefined)
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
      assert.deepEqual(pluck(await list({ search: 'laptop' }), 'lastFour'), [other.token.slice(-4)])
      assert.equal((await list({ search: 'may be 0999' }))[0]?.lastFour, '0999')
    })

    await t.test('a request examines a limited number of keys, and the next one continues', async () => {
      const { store } = server.services
      const examined = 2_000
      await store.transaction((db) => db.deleteFrom('api_keys').where('id', 'like', 'tok_00000%').execute())
      await insertRevokedKeys(store, server.workspace.id, examined + 500)
      const first = (await ann.get(`${keys}?search=may be 0003`)).json
      assert.deepEqual(first.keys, [])
      const second = (await ann.get(`${keys}?search=may be 0003&cursor=${first.next}`)).json
      assert.deepEqual([second.keys.length, second.next], [1, null])
      const active = (await ann.get(`${keys}?search=nothing&state=active`)).json
      assert.deepEqual(active, { keys: [], next: null }, 'revoked keys are not examined')
    })

    await t.test('the list takes as many queries for long lineages as for short ones', async (t) => {
      if (engine === 'sqlite') return t.skip('queries are recorded when they are prepared')
      const recorded = recordQueries(t)
      const queries = async () => {
        recorded.length = 0
        await list({ state: 'active' })
        return recorded.filter(({ text }) => text.includes('from "api_keys"')).length
      }
      let { id } = await create('rotated often')
      const before = await queries()
      for (let times = 0; times < 4; times++) id = (await rotate(id, '7d')).id
      assert.ok((await queries()) <= before)
    })
  })
