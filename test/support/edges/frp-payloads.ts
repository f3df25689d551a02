// The requests that frps sends to its plugin.
import assert from 'node:assert/strict'

export const postJson = (server: { url: string }, path: string, body: unknown) =>
  fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-frp-reqid': 'b3c2' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

export const ALLOWED = { reject: false, reject_reason: '', unchange: true }

export const userOf = (token: string | undefined) => ({
  user: 'acme',
  metas: token === undefined ? null : { token },
  run_id: '0d1f7a2b9c3e4f56',
})

export const login = (token: string | undefined, user: unknown = 'acme') => ({
  version: '0.70.0',
  hostname: 'laptop',
  os: 'linux',
  arch: 'arm64',
  user,
  privilege_key: '5f4dcc3b5aa765d61d8327deb882cf99',
  timestamp: 1_763_200_000,
  run_id: '',
  pool_count: 1,
  metas: token === undefined ? null : { token },
  client_spec: {},
  client_address: '203.0.113.7:52114',
})

export const proxy = (token: string, more: object) => ({
  user: userOf(token),
  proxy_name: 'acme.web',
  proxy_type: 'http',
  use_encryption: false,
  use_compression: false,
  bandwidth_limit: '',
  bandwidth_limit_mode: 'client',
  group: '',
  group_key: '',
  ...more,
})

/** frps puts the operation into the query, too. */
export const sendFrp = (server: { url: string }, credential: string, op: string, content: unknown) =>
  postJson(server, `/edge/frp/${credential}?version=0.1.0&op=${op}`, { version: '0.1.0', op, content })

interface Decision {
  reject: boolean
  reject_reason: string
  unchange: boolean
  content?: { group?: string }
}

export const callFrp =
  (server: { url: string }, credential: string) => async (op: string, content: unknown) => {
    const response = await sendFrp(server, credential, op, content)
    assert.equal(response.status, 200)
    const decision = (await response.json()) as Decision
    const { reject, reject_reason, unchange } = decision
    assert.deepEqual([typeof reject, typeof reject_reason, typeof unchange], ['boolean', 'string', 'boolean'])
    return decision
  }
