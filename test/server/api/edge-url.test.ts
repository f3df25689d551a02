// The edge that the control plane names to tunnel clients: GET /workspace/v1/edge.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { databaseChecks } from '../../../src/server/doctor/database.ts'
import { createGroup } from '../../../src/server/domain/cluster/groups.ts'
import { createEdge, revoke, setUrl } from '../../../src/server/domain/tunnels/edges.ts'
import { caller, operator, serve, type TestServer } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { addTunnelEdge, expireLease } from '../../support/edges/open-tunnels.ts'

const URL_A = 'https://a.example.com'

async function findEdges({ config }: TestServer, baseUrl?: string) {
  const { checks, close } = databaseChecks({ ...config, baseUrl }, Date.now)
  const findings = await checks.find(({ name }) => name === 'edges')?.run()
  await close()
  return [findings].flat().map((one) => `${one?.status}: ${one?.message}`)
}

for (const engine of engines) {
  test(`${engine}: clients get the URL that the operator has set, if active edges have just one`, async (t) => {
    const server = await serve(t, { engine })
    const { services, key } = server
    const call = caller(`${server.url}/workspace/v1`, key.token)
    const findUrl = async () => {
      const { status, json } = await call('GET', '/edge')
      assert.deepEqual([status, json.tunnelDomain], [200, 'acme.localhost'])
      return json.url
    }
    assert.equal(await findUrl(), null)
    assert.deepEqual(await findEdges(server), ['skipped: There are no edges.'])

    const first = await createEdge(services, operator, 'a', { url: `${URL_A}/` })
    const second = await createEdge(services, operator, 'b')
    assert.equal(await findUrl(), URL_A, 'an edge without a URL does not count')
    assert.deepEqual(await findEdges(server), [
      `warning: Edges without a public URL: "b" (${second.id}). Tunnel clients connect to the tunnel domain.`,
    ])
    await setUrl(services, operator, second.id, 'http://b.example.com:81/edge/')
    assert.equal(await findUrl(), null, 'the tunnel domain decides')
    assert.deepEqual(await findEdges(server, 'https://adit.example.com'), [
      `warning: Edges with a URL without encryption: "b" (${second.id}). Tunnel clients send no API key there.`,
      'ok: Edges have 2 different URLs; tunnel clients get that of a connected edge',
    ])
    await setUrl(services, operator, second.id, URL_A)
    assert.equal(await findUrl(), URL_A)
    assert.deepEqual(await findEdges(server), [`ok: ${URL_A} is the URL of all edges`])
    await setUrl(services, operator, second.id, 'https://b.example.com')
    await revoke(services, operator, first.id)
    assert.equal(await findUrl(), 'https://b.example.com', 'a revoked edge does not count')
    await setUrl(services, operator, second.id, null)
    assert.equal(await findUrl(), null)
    await assert.rejects(setUrl(services, operator, first.id, URL_A), /There is no active edge/)

    for (const secret of [null, second.token, 'adit_nonsense'])
      assert.equal((await call('GET', '/edge', { key: secret })).status, 401)
    assert.equal((await call('GET', '/openapi.json', { key: null })).status, 200)
    for (const url of [
      'ftp://x.example',
      'https://user:secret@x.example',
      'https://x/?a',
      'https://x/#a',
      'x',
      '',
    ])
      await assert.rejects(createEdge(services, operator, 'c', { url }), /must be a URL such as/, url)
  })

  test(`${engine}: of edges with different URLs, clients get one that is connected, if it leads to all`, async (t) => {
    const server = await serve(t, { engine })
    const { services, key } = server
    const findUrl = async () =>
      (await caller(`${server.url}/workspace/v1`, key.token)('GET', '/edge')).json.url
    const addEdge = async (name: string, group?: string) => {
      const edge = await addTunnelEdge(server, name, server.url, group)
      await setUrl(services, operator, edge.id, `https://${name}.example.com`)
      return edge
    }
    const report = (tunnels: number, peerAddress?: string) => ({
      load: { tunnels, streams: 0 },
      ...(peerAddress !== undefined && { peerAddress }),
    })
    const a = await addEdge('a')
    await a.sync(report(2))
    const b = await addEdge('b')
    assert.equal(await findUrl(), URL_A, 'an edge that never ran changes nothing')
    await createGroup(services, operator, 'eu')
    await (await addEdge('c', 'eu')).sync(report(0))
    assert.equal(await findUrl(), URL_A, 'an edge of another group changes nothing')

    await b.sync(report(1))
    assert.equal(await findUrl(), null, 'a request for a tunnel at one edge would not be found at the other')
    const names = `"b" (${b.id}), "a" (${a.id})`
    const doctor = (edges: string) => [
      `warning: Edges with different URLs that do not forward requests to others: ${edges}. ` +
        'Tunnel clients connect to the tunnel domain, so its DNS must lead to the edges.',
    ]
    assert.deepEqual(await findEdges(server), doctor(names))
    await a.sync(report(2, '10.0.0.1:8446'))
    assert.equal(await findUrl(), null, 'one edge does not forward')
    assert.deepEqual(await findEdges(server), doctor(`"b" (${b.id})`))
    await b.sync(report(1, '10.0.0.2:8446'))
    assert.equal(await findUrl(), 'https://b.example.com', 'the edge with the fewest tunnels')
    await b.sync(report(3, '10.0.0.2:8446'))
    assert.equal(await findUrl(), URL_A)
    assert.deepEqual(await findEdges(server), [
      'ok: Edges have 3 different URLs; tunnel clients get that of a connected edge',
    ])

    await expireLease(server, a.id)
    assert.equal(await findUrl(), 'https://b.example.com')
    await expireLease(server, b.id)
    assert.equal(await findUrl(), null, 'without connected edges, all are considered')
    await addTunnelEdge(server, 'no-url').then((edge) => edge.sync(report(0)))
    assert.equal(await findUrl(), null, 'no connected edge has a URL')
  })
}
