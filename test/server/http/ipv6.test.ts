// A control plane on IPv6. On `::`, an IPv4 client has a mapped address, and is still one client.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addMember, openBrowser, PASSWORD, serveWithOwner, signIn } from '../../support/accounts/users.ts'
import { serve, type TestServer } from '../../support/api/server.ts'
import { createDatabase } from '../../support/databases/create.ts'
import { collectText } from '../../support/network/collect.ts'
import { ipv6Missing, MAPPED } from '../../support/network/ipv6.ts'
import { sendRaw } from '../../support/network/raw.ts'
import { pluck } from '../../support/pluck.ts'
import { startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

/** As browsers write it. */
const urlAt = ({ url }: TestServer, host: string) => new URL(`http://${host}:${new URL(url).port}`).origin

suite('control plane on IPv6', { skip: ipv6Missing }, () => {
  test('it listens on ::1, and on :: for IPv4 as well', async (t) => {
    for (const [host, hosts] of [
      ['::1', ['[::1]']],
      ['::', ['[::1]', '127.0.0.1', `[${MAPPED}]`]],
    ] as const) {
      const server = await serve(t, { engine: 'sqlite', env: { ADIT_HOST: host } })
      for (const url of [server.url, ...hosts.map((to) => urlAt(server, to))])
        assert.equal((await fetch(`${url}/healthz`)).status, 200, `${host}: ${url}`)
    }
  })

  test('an IPv4 client has one budget and one address, however it connects to ::', async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine: 'sqlite', env: { ADIT_HOST: '::' } })
    const mapped = openBrowser(urlAt(server, `[${MAPPED}]`))
    await signIn(mapped, ann.email)
    const created = await mapped.post('/workspaces/acme/keys', { label: 'mapped' })
    assert.equal(created.status, 201, created.text)
    const { entries } = (await ann.get('/workspaces/acme/audit')).json
    assert.deepEqual([entries[0].action, entries[0].address], ['key.created', '127.0.0.1'])
    const { sessions } = (await ann.get('/account/sessions')).json
    assert.deepEqual([...new Set(pluck(sessions, 'address'))], ['127.0.0.1'])
    const attempt = (host: string, password: string) =>
      signIn(openBrowser(urlAt(server, host)), ann.email, password)
    for (const host of ['127.0.0.1', `[${MAPPED}]`, '127.0.0.1', `[${MAPPED}]`, '127.0.0.1'])
      assert.equal((await attempt(host, 'wrong')).status, 401)
    for (const host of ['127.0.0.1', `[${MAPPED}]`])
      assert.equal((await attempt(host, PASSWORD)).status, 429, host)
    assert.equal((await attempt('[::1]', PASSWORD)).status, 200)
  })

  test('a trusted IPv6 network includes no IPv4 client, and a mapped address is the IPv4 client', async (t) => {
    for (const [trusted, proxies] of [
      ['::/0', ['[::1]']],
      ['::1/64', ['[::1]']],
      ['0.0.0.0/0', ['127.0.0.1', `[${MAPPED}]`]],
      [MAPPED, ['127.0.0.1', `[${MAPPED}]`]],
    ] as [string, string[]][]) {
      const env = { ADIT_HOST: '::', ADIT_TRUSTED_PROXIES: trusted }
      const server = await serve(t, { engine: 'sqlite', env })
      const { email } = await addMember(server, 'Ann', 'owner')
      for (const host of ['127.0.0.1', `[${MAPPED}]`, '[::1]']) {
        const browser = openBrowser(urlAt(server, host))
        const forwarded = { 'x-forwarded-for': '192.0.2.9' }
        await browser.call('POST', '/sign-in', { email, password: PASSWORD }, forwarded)
        const { sessions } = (await browser.get('/account/sessions')).json
        const { address } = sessions.find(({ isThis }: { isThis: boolean }) => isThis)
        assert.equal(address === '192.0.2.9', proxies.includes(host), `${trusted}: ${host} is ${address}`)
      }
    }
  })

  test('the log never has a mapped address', async (t) => {
    const running = await startServing(t, {
      ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
      ADIT_HOST: '::',
    })
    const log = collectText(running.child.stderr)
    await sendRaw(running.url, 'nonsense\r\n\r\n')
    await sendRaw(running.url, 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(500))
    await until('both are logged', () => /malformed HTTP/.test(log()) && /too many pipelined/.test(log()))
    for (const line of log().matchAll(/^.*(malformed HTTP|too many pipelined).*$/gm))
      assert.match(line[0], /"from":"127\.0\.0\.1"/)
  })
})
