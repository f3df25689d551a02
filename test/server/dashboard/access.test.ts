// Access matrix: every dashboard operation with every kind of caller.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Api, apis } from '../../../src/contract/apis.ts'
import { type Role, roles } from '../../../src/contract/operation.ts'
import {
  allOperations,
  callOperation,
  examplePath,
  isRole,
} from '../../support/accounts/dashboard-operations.ts'
import { addMember, openBrowser } from '../../support/accounts/users.ts'
import { createResponseValidator } from '../../support/api/openapi.ts'
import { addEdge, addWorkspace, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'

/** Skipped, because they would end the session of the test. */
const ending = new Set(['session.end', 'session.end-all', 'members.leave'])

for (const engine of engines)
  test(`${engine}: every operation allows exactly the callers of its access level`, async (t) => {
    const server = await serve(t, { engine })
    await addWorkspace(server, 'elsewhere')
    const { json: document } = await openBrowser(server.url).get('/openapi.json')
    const validateResponse = createResponseValidator(document)
    const users = {
      anonymous: openBrowser(server.url),
      'an owner of another workspace': (await addMember(server, 'Eve', 'owner', 'elsewhere')).browser,
      member: (await addMember(server, 'Mia', 'member')).browser,
      admin: (await addMember(server, 'Adam', 'admin')).browser,
      owner: (await addMember(server, 'Olga', 'owner')).browser,
    }
    for (const [name, browser] of Object.entries(users))
      for (const operation of allOperations) {
        const { id, access, method } = operation
        if (ending.has(id) && name !== 'anonymous') continue
        const response = await callOperation(browser, operation)
        const what = `${name}: ${id} → ${response.status} ${response.text}`
        validateResponse(operation.path, method, response)
        assert.equal(response.headers.get('access-control-allow-origin'), null)
        if (access === 'anyone' || access === 'browser') assert.notEqual(response.status, 403, what)
        else if (name === 'anonymous') assert.equal(response.status, 401, what)
        else if (isRole(access) && !(name in { member: 1, admin: 1, owner: 1 }))
          assert.deepEqual([response.status, response.text], [404, '{"error":"not_found"}'], what)
        else if (isRole(access)) {
          const allowed = roles.indexOf(name as Role) >= roles.indexOf(access)
          assert.equal(response.status === 403, !allowed, what)
          assert.notEqual(response.status, 401, what)
        } else assert.notEqual(response.status, 401, what)
      }
  })

test('no operation of any API accepts the credential of another', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { cookies } = await addMember(server, 'Olga', 'owner')
  const credentials = {
    key: { authorization: `Bearer ${server.key.token}` },
    edge: { authorization: `Bearer ${(await addEdge(server)).token}` },
    user: { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') },
    none: {},
  }
  for (const { prefix, operations } of Object.values<Api>(apis))
    for (const operation of operations) {
      const { access, method, id } = operation
      if (access === 'anyone' || access === 'browser' || access === 'device') continue
      for (const [kind, headers] of Object.entries(credentials)) {
        if (kind === (isRole(access) ? 'user' : access)) continue
        const response = await fetch(server.url + prefix + examplePath(operation), {
          method,
          headers: { origin: server.url, ...headers },
        })
        assert.equal(response.status, 401, `${prefix} ${id} with ${kind}`)
      }
    }
})
