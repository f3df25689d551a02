// Compressed responses: what is compressed, and that caches and conditional requests see the same resource.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acceptsEncoding } from '../../../src/server/http/operations/compression.ts'
import { addMember } from '../../support/accounts/users.ts'
import { serve, type TestServer } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'

const IDENTITY = { 'accept-encoding': 'identity' }
const GZIP = { 'accept-encoding': 'gzip' }

const readCoding = ({ headers }: { headers: Headers }) => headers.get('content-encoding')
const readLength = ({ headers }: { headers: Headers }) => Number(headers.get('content-length'))

async function readBoth({ call }: TestServer, path: string) {
  const identity = await call('GET', path, { headers: IDENTITY })
  const compressed = await call('GET', path, { headers: GZIP })
  assert.deepEqual([readCoding(identity), readCoding(compressed)], [null, 'gzip'], path)
  return { identity, compressed }
}

for (const engine of engines)
  test(`${engine}: a long response is compressed if the client asks, with one ETag for both forms`, async (t) => {
    const server = await serve(t, { engine })
    for (const path of ['/usage?days=365', '/openapi.json', '/usage?days=365']) {
      const { identity, compressed } = await readBoth(server, path)
      assert.equal(compressed.text, identity.text)
      assert.ok(readLength(compressed) < readLength(identity) / 3)
      const etag = identity.headers.get('etag') as string
      assert.equal(compressed.headers.get('etag'), `W/${etag}`, 'weak: the bytes differ')
      for (const headers of [IDENTITY, GZIP]) {
        const same = headers === GZIP ? compressed : identity
        const head = await server.call('HEAD', path, { headers })
        for (const name of ['content-encoding', 'content-length', 'etag', 'vary'])
          assert.equal(head.headers.get(name), same.headers.get(name), `HEAD ${path} ${name}`)
        assert.equal(same.headers.get('vary'), 'Accept-Encoding')
        for (const tag of [etag, `W/${etag}`]) {
          const known = await server.call('GET', path, { headers: { ...headers, 'if-none-match': tag } })
          assert.deepEqual([known.status, known.text, readCoding(known)], [304, '', null], tag)
          assert.equal(known.headers.get('etag'), same.headers.get('etag'))
        }
      }
    }
  })

test('a change is visible in compressed and uncompressed responses that were cached', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  for (let number = 0; number < 20; number += 1) await server.post('/tokens', { label: `key ${number}` })
  await readBoth(server, '/tokens')
  await server.post('/tokens', { label: 'another' })
  const { identity, compressed } = await readBoth(server, '/tokens')
  for (const { json } of [identity, compressed]) assert.equal(json.tokens[0].label, 'another')
})

test('short responses, secrets, errors and the dashboard are not compressed', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const label = '😀'.repeat(80)
  const created = await server.post('/tokens', { label }, GZIP)
  assert.deepEqual([created.status, readCoding(created), created.headers.get('vary')], [201, null, null])
  for (const path of ['/workspace', '/usage?days=1', '/nope', `/usage?days=${'1'.repeat(2_000)}`])
    assert.equal(readCoding(await server.call('GET', path, { headers: GZIP })), null, path)
  const ann = await addMember(server, 'Ann', 'owner')
  const usage = await ann.call('GET', '/workspaces/acme/usage?days=365', undefined, GZIP)
  assert.ok(usage.text.length > 5_000)
  assert.equal(readCoding(usage), null)
})

test('Accept-Encoding is read as RFC 9110 says', () => {
  for (const header of [
    'gzip',
    'br, GZIP',
    'gzip;q=0.1',
    '*',
    'identity;q=1, *;q=0.5',
    'gzip ; q=1.0',
    'br;q=0,gzip',
  ])
    assert.ok(acceptsEncoding(header, 'gzip'), header)
  for (const header of [
    undefined,
    '',
    'identity',
    'br',
    'gzip;q=0',
    'gzip;q=0.000, *',
    '*;q=0',
    'gzipped',
    'gzip;q=x',
  ])
    assert.ok(!acceptsEncoding(header, 'gzip'), `${header}`)
})
