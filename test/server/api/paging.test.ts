import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { addWorkspace, serve, type TestServer } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'

async function createKeys({ ctx }: TestServer, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await createKey(ctx, { label: `k${index}` })
}

const listIds = (json: { tokens: { id: string }[] }) => json.tokens.map((key) => key.id)

function readNextPath(headers: Headers): string | undefined {
  const link = headers.get('link')
  if (link === null) return undefined
  const target = /^<([^>]+)>; rel="next"$/.exec(link)?.[1]
  assert.ok(target, `not a link: ${link}`)
  const { pathname, search } = new URL(target, 'http://anywhere')
  return pathname.replace('/api/v1', '') + search
}

for (const engine of engines) {
  test(`${engine}: following the links yields the whole list, each key once, in order`, async (t) => {
    const server = await serve(t, { engine })
    await createKeys(server, 11)
    await addWorkspace(server, 'other')
    const whole = await server.call('GET', '/tokens')
    assert.equal(whole.headers.get('link'), null)
    for (const limit of [1, 3, 4, 11, 12, 13, 1000]) {
      const seen: string[] = []
      let path: string | undefined = `/tokens?limit=${limit}`
      while (path !== undefined) {
        const page = await server.call('GET', path)
        assert.equal(page.status, 200)
        assert.ok(page.json.tokens.length <= limit)
        seen.push(...listIds(page.json))
        path = readNextPath(page.headers)
      }
      assert.deepEqual(seen, listIds(whole.json), `limit ${limit}`)
    }
  })

  test(`${engine}: keys created while pages are read neither repeat nor hide others`, async (t) => {
    const server = await serve(t, { engine })
    await createKeys(server, 4)
    const before = listIds((await server.call('GET', '/tokens')).json)
    const first = await server.call('GET', '/tokens?limit=2')
    await createKeys(server, 3)
    const rest = await server.call(
      'GET',
      readNextPath(first.headers)?.replace('limit=2', 'limit=100') as string,
    )
    assert.deepEqual([...listIds(first.json), ...listIds(rest.json)], before)
  })

  test(`${engine}: a cursor without a limit gives the rest of the list`, async (t) => {
    const server = await serve(t, { engine })
    await createKeys(server, 4)
    const whole = listIds((await server.call('GET', '/tokens')).json)
    const rest = await server.call('GET', `/tokens?cursor=${whole[1]}`)
    assert.deepEqual(listIds(rest.json), whole.slice(2))
  })

  test(`${engine}: a cursor of another workspace reveals nothing of it`, async (t) => {
    const server = await serve(t, { engine })
    const other = await addWorkspace(server, 'other')
    const { json } = await server.call('GET', `/tokens?cursor=${other.key.id}`)
    assert.deepEqual(listIds(json), [server.key.id])
  })

  test(`${engine}: an invalid limit or cursor is 400`, async (t) => {
    const { call } = await serve(t, { engine })
    for (const query of [
      'limit=0',
      'limit=1001',
      'limit=-1',
      'limit=1.5',
      'limit=',
      'limit=abc',
      'limit=1&limit=2',
      'limit=99999999999999999999999',
      'cursor=',
      'cursor=abc',
      'cursor=tok_%00',
      "cursor=tok_'",
      `cursor=tok_${'a'.repeat(100)}`,
      'cursor=tok_a&cursor=tok_b',
    ]) {
      const { status, json } = await call('GET', `/tokens?${query}`)
      assert.equal(status, 400, query)
      assert.match(json.details[0].path, /^\/query\/(limit|cursor)$/)
    }
  })
}

test('behind a proxy that strips a path prefix, links include it', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_BASE_URL: 'https://example.com/control/' } })
  await createKeys(server, 1)
  const { headers } = await server.call('GET', '/tokens?limit=1')
  assert.match(headers.get('link') ?? '', /^<\/control\/api\/v1\/tokens\?limit=1&cursor=tok_/)
})
