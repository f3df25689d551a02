// Responses from the response cache on keep-alive connections: the server compares the Authorization header
// with the last one instead of hashing it, and checks the credential for each request all the same.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { revoke as revokeEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { archiveAsOperator } from '../../../src/server/domain/workspaces/archive.ts'
import { addEdge, addWorkspace, operator, serve, type TestServer } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { type KeptResponse, keepAliveClient, responseTo } from '../../support/network/keep-alive.ts'
import { readSource } from '../../support/network/response-source.ts'
import { until } from '../../support/until.ts'

const bearer = (token: string): [string, string] => ['Authorization', `Bearer ${token}`]

/** A connection with functions that read the workspace and verify keys. */
async function connect(t: Test, { url }: TestServer) {
  const client = keepAliveClient(t, url)
  const fastify = readSource(await client.send({ method: 'GET', path: '/api/v1/unknown', headers: [] }))
  /** Repeats the request until its response is from the cache. */
  async function untilHit(send: () => Promise<KeptResponse>): Promise<KeptResponse> {
    let response: KeptResponse | undefined
    await until('a cache hit', async () => {
      response = await send()
      assert.equal(response.status, 200)
      return readSource(response) !== fastify
    })
    return response as KeptResponse
  }
  const read = (...headers: [string, string][]) =>
    client.send({ method: 'GET', path: '/api/v1/workspace', headers })
  const verification = (edge: string, key: string) => {
    const body = JSON.stringify({ key })
    const headers = [
      bearer(edge),
      ['Content-Type', 'application/json'],
      ['Content-Length', String(body.length)],
    ] satisfies [string, string][]
    return { method: 'POST', path: '/edge/v1/keys/verify', headers, body }
  }
  return {
    ...client,
    untilHit,
    read,
    verification,
    verify: (edge: string, key: string) => client.send(verification(edge, key)),
  }
}

const server = await serve({ after }, { engine: 'sqlite' })

test('a key that is revoked, expired or of an archived workspace gets 401 on a connection that it was used on', async (t) => {
  const { read, untilHit } = await connect(t, server)
  const createContext = (workspaceId: string) => ({ ...server.services, actor: operator, workspaceId })

  const revoked = await addWorkspace(server, 'revoked')
  await untilHit(() => read(bearer(revoked.key.token)))
  await revoke(createContext(revoked.workspace.id), revoked.key.id)
  assert.equal((await read(bearer(revoked.key.token))).status, 401)

  const archived = await addWorkspace(server, 'archived')
  await untilHit(() => read(bearer(archived.key.token)))
  await archiveAsOperator(server.services, operator, 'archived')
  assert.equal((await read(bearer(archived.key.token))).status, 401)

  const expiring = await createKey(createContext(server.workspace.id), {
    expiresAt: new Date(Date.now() + 3_000).toISOString(),
  })
  await read(bearer(expiring.token))
  await read(bearer(expiring.token))
  await until('it has expired', () => Date.now() >= Date.parse(expiring.expiresAt as string))
  assert.equal((await read(bearer(expiring.token))).status, 401)
})

test('another header on the same connection is verified on its own', async (t) => {
  const other = await addWorkspace(server, 'other')
  const { read, untilHit } = await connect(t, server)
  const readSlug = ({ body }: KeptResponse) => JSON.parse(body).slug
  const own = bearer(server.key.token)
  const theirs = bearer(other.key.token)
  for (const header of [own, theirs]) await untilHit(() => read(header))
  for (let turn = 0; turn < 3; turn++) {
    assert.equal(readSlug(await untilHit(() => read(own))), 'acme')
    assert.equal(readSlug(await untilHit(() => read(theirs))), 'other')
    for (const headers of [
      [],
      [own, theirs],
      [theirs, theirs],
      [bearer(`${other.key.token}x`)],
      [bearer(other.key.token.slice(0, -1))],
      [['Authorization', other.key.token]],
      [['Authorization', '']],
    ] as [string, string][][])
      assert.equal((await read(...headers)).status, 401, JSON.stringify(headers))
  }
})

test('an edge credential that is revoked before the body arrives gets 401', async (t) => {
  const edge = await addEdge(server)
  const { begin, verify, verification, untilHit } = await connect(t, server)
  await untilHit(() => verify(edge.token, server.key.token))
  const spec = verification(edge.token, server.key.token)
  const sent = begin(spec)
  const received = responseTo(sent)
  sent.flushHeaders()
  await revokeEdge(server.services, operator, edge.id)
  sent.end(spec.body)
  assert.equal((await received).status, 401)
  assert.equal((await verify(edge.token, server.key.token)).status, 401)
})
