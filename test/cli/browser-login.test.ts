// `adit login` with the browser, on a terminal.
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import { delimiter, join } from 'node:path'
import { after, test } from 'node:test'
import { addMember, serveWithOwner } from '../support/accounts/users.ts'
import { serve } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { atTerminal, hasTerminal, NO_TERMINAL } from '../support/processes/terminal.ts'
import { until } from '../support/until.ts'

const { server, ann } = await serveWithOwner({ after }, { engine: 'sqlite' })
const PROMPT = 'Press Enter to sign in with your browser, or paste an API key (not shown): '
const CODE = /Approve only if the page shows this code: \S*?([A-Z]{4}-[A-Z]{4})/

const onTerminal = { skip: hasTerminal ? false : NO_TERMINAL }

/** A home folder, and a browser that only records which page it was asked to open. */
function createHome(t: Test) {
  const folder = createFolder(t)
  const opened = join(folder, 'opened')
  const file = join(folder, 'adit/profiles.json')
  mkdirSync(join(folder, 'adit'))
  writeFileSync(join(folder, 'xdg-open'), `#!/bin/sh\necho "$1" > '${opened}'\n`, { mode: 0o755 })
  const PATH = [folder, process.env.PATH].join(delimiter)
  return {
    env: { XDG_CONFIG_HOME: folder, HOME: folder, PATH, DISPLAY: ':0' },
    file,
    opened: () => (existsSync(opened) ? readFileSync(opened, 'utf8').trim() : undefined),
    profiles: () => JSON.parse(readFileSync(file, 'utf8')).profiles,
  }
}

async function codeAt(login: ReturnType<typeof atTerminal>): Promise<string> {
  await until('the code', () => CODE.test(login.output()))
  return CODE.exec(login.output())?.[1] as string
}

test(
  'login opens the browser, and saves the key that is created after the approval',
  onTerminal,
  async (t) => {
    const { env, file, opened, profiles } = createHome(t)
    const old = { url: server.url, apiKey: server.key.token, keyId: server.key.id }
    writeFileSync(file, JSON.stringify({ current: 'default', profiles: { default: old } }))
    const login = atTerminal(t, ['login', '--url', server.url], env)
    await login.reply(PROMPT, '\r')
    const code = await codeAt(login)
    await until('the browser', () => opened() !== undefined)
    assert.equal(opened(), `${server.url}/device?code=${code}`)
    const { json: device } = await ann.post('/devices/read', { code })
    assert.equal(device.deviceName, hostname())
    await ann.post('/workspaces/acme/devices', { code })
    assert.equal(await login.ended, 0)
    const { apiKey, keyId } = profiles().default
    const output = login.output()
    assert.ok(!output.includes(apiKey), 'the key was shown')
    assert.match(output, /workspace "Acme" \(acme\), approved by Ann\./)
    assert.ok(output.includes(`Created the personal API key "${hostname()}" (${keyId}) for this machine.`))
    assert.ok(output.includes(`stays valid. To revoke it, run \`adit keys revoke ${old.keyId}\`.`), output)
    assert.equal(output.split('`adit tunnel 3000`').length, 2, 'the next step, once')
    assert.equal((await server.call('GET', '/workspace', { key: apiKey })).status, 200)
  },
)

test('login does not say of a revoked key that it stays valid', onTerminal, async (t) => {
  const { env, file } = createHome(t)
  const { json: old } = await server.call('POST', '/tokens')
  assert.equal((await server.call('DELETE', `/tokens/${old.id}`)).status, 200)
  const profile = { url: server.url, apiKey: old.token, keyId: old.id }
  writeFileSync(file, JSON.stringify({ current: 'default', profiles: { default: profile } }))
  const login = atTerminal(t, ['login', '--url', server.url], env)
  await login.reply(PROMPT, '\r')
  await ann.post('/workspaces/acme/devices', { code: await codeAt(login) })
  assert.equal(await login.ended, 0)
  assert.doesNotMatch(login.output(), /previous API key|stays valid/)
})

test('a member of variant B waits for an admin, and gets the key that is approved', onTerminal, async (t) => {
  let lateMs = 0
  const variantB = await serve(t, {
    engine: 'sqlite',
    env: { ADIT_API_VARIANT: 'B' },
    clock: () => Date.now() + lateMs,
  })
  const [adam, mia] = [await addMember(variantB, 'Adam', 'admin'), await addMember(variantB, 'Mia', 'member')]
  const { env, profiles } = createHome(t)
  const login = atTerminal(t, ['login', '--url', variantB.url], env)
  await login.reply(PROMPT, '\r')
  const approved = await mia.post('/workspaces/acme/devices', { code: await codeAt(login) })
  assert.equal(approved.json.awaitsKeyApproval, true, approved.text)
  await until('the request', () => /Waiting for an admin or owner/.test(login.output()))
  const [{ id }] = (await adam.get('/workspaces/acme/key-requests')).json.requests
  assert.equal((await adam.post(`/workspaces/acme/key-requests/${id}/approve`)).status, 200)
  assert.equal(await login.ended, 0)
  assert.match(login.output(), /approved by Adam\./)
  const { apiKey } = profiles().default
  assert.equal((await variantB.call('GET', '/workspace', { key: apiKey })).status, 200)

  const undecided = atTerminal(t, ['login', '--url', variantB.url], env)
  await undecided.reply(PROMPT, '\r')
  await mia.post('/workspaces/acme/devices', { code: await codeAt(undecided) })
  lateMs = 11 * 60_000
  assert.equal(await undecided.ended, 1)
  assert.match(
    undecided.output(),
    / Your request for an API key is not approved yet\. Run `adit login` again when it is; /,
  )
  assert.equal(profiles().default.apiKey, apiKey, 'the earlier key is still there')
})

test(
  'a proxy that wants a password in the middle of the sign-in ends it, and says how to set it',
  onTerminal,
  async (t) => {
    // As a forward proxy, it gets the whole URL.
    const proxy = createServer(async (request, response) => {
      const { pathname } = new URL(request.url ?? '')
      if (pathname === '/device/openapi.json') return response.writeHead(407).end()
      return response.end(await (await fetch(server.url + pathname)).text())
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    atEnd(t, () => proxy.close())
    const { env } = createHome(t)
    const HTTP_PROXY = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const login = atTerminal(t, ['login', 'http://adit.example.com'], { ...env, HTTP_PROXY })
    assert.equal(await login.ended, 1)
    assert.match(
      login.output(),
      /\(HTTP_PROXY\) rejected the connection with 407: set a valid user and password/,
    )
    assert.doesNotMatch(login.output(), /API key|Server \[/, 'nothing is asked')
  },
)

test('a denied login fails, and saves nothing', onTerminal, async (t) => {
  const { env, file } = createHome(t)
  const login = atTerminal(t, ['login', '--url', server.url], env)
  await login.reply(PROMPT, '\r')
  await ann.post('/devices/deny', { code: await codeAt(login) })
  assert.equal(await login.ended, 1)
  assert.match(login.output(), /The request was denied\./)
  assert.ok(!existsSync(file))
})

test('over SSH no browser is opened, and Ctrl-C cancels', onTerminal, async (t) => {
  const { env, file, opened } = createHome(t)
  const login = atTerminal(t, ['login', '--url', server.url], {
    ...env,
    SSH_CONNECTION: '192.0.2.1 1 192.0.2.2 22',
  })
  await login.reply(PROMPT, '\r')
  await codeAt(login)
  assert.match(login.output(), /Open this page in a browser:/)
  await login.reply('Press Ctrl-C to cancel.', '\u0003')
  assert.equal(await login.ended, 1)
  assert.match(login.output(), /Canceled\./)
  assert.equal(opened(), undefined)
  assert.ok(!existsSync(file))
})

/** A server that passes requests for the API on, and otherwise responds with this. */
async function startOther(t: Test, respond: (path: string) => object | undefined): Promise<string> {
  const other = createServer(async (request, response) => {
    const { url: path = '', headers } = request
    const { authorization = '' } = headers
    const isApi = path.startsWith('/api/')
    const body = isApi ? undefined : respond(path)
    const passed = isApi ? await fetch(server.url + path, { headers: { authorization } }) : undefined
    response.writeHead(passed?.status ?? (body ? 200 : 404), { 'content-type': 'application/json' })
    response.end(passed ? await passed.text() : JSON.stringify(body ?? { error: 'not_found' }))
  })
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
  atEnd(t, () => other.close())
  return `http://127.0.0.1:${(other.address() as AddressInfo).port}`
}

test('a server without device authorization is offered an API key only', onTerminal, async (t) => {
  const url = await startOther(t, () => undefined)
  const { env, profiles } = createHome(t)
  const login = atTerminal(t, ['login', '--url', url], env)
  await login.reply('API key (not shown): ', '\r')
  await login.reply('API key (not shown): ', `${server.key.token}\r`)
  assert.equal(await login.ended, 0)
  assert.ok(!login.output().includes('browser'))
  assert.deepEqual(profiles().default, { url, apiKey: server.key.token })
})

test(
  'an address that is not a web page is not opened, and control characters are not printed',
  onTerminal,
  async (t) => {
    const codes = { device_code: 'x', expires_in: 600, interval: 5 }
    let page = ''
    let code = 'BCDF-GHJK'
    const url = await startOther(t, () => ({ ...codes, user_code: code, verification_uri_complete: page }))
    const { env, opened } = createHome(t)
    const login = atTerminal(t, ['login', '--url', url], env)
    for (const hostile of ['file:///etc/passwd', '--version', 'javascript:alert(1)']) {
      page = hostile
      await login.reply(PROMPT, '\r')
    }
    await until(
      'the last one was refused',
      () => login.output().split('sent an invalid response').length === 4,
    )
    page = `${url}/device\n\n  forged`
    for (const hostile of ['BCDF\u001b]0;title\u0007', 'BCDF\n\nforged', 'x'.repeat(21)]) {
      code = hostile
      await login.reply(PROMPT, '\r')
    }
    await until('the codes were refused', () => login.output().split('sent an invalid response').length === 7)
    code = 'BCDF-GHJK'
    await login.reply(PROMPT, '\r')
    await login.reply('Press Ctrl-C to cancel.', '\u0003')
    assert.equal(await login.ended, 1)
    assert.equal(opened(), `${url}/device%20%20forged`)
    assert.ok(!login.output().includes('  forged'), 'a line of the server')
    assert.ok(!login.output().includes('\u001b]0;'), 'printed as it was sent')
  },
)

test('a page of another host is shown with a warning, and not opened', onTerminal, async (t) => {
  const codes = { device_code: 'x', user_code: 'BCDF-GHJK', expires_in: 600, interval: 5 }
  let page = 'https://user:password@evil.test/'
  const url = await startOther(t, () => ({ ...codes, verification_uri_complete: page }))
  const { env, opened } = createHome(t)
  const login = atTerminal(t, ['login', '--url', url], env)
  await login.reply(PROMPT, '\r')
  await login.reply('sent an invalid response to the sign-in', '')
  page = `${url}/${'x'.repeat(10_000)}`
  await login.reply(PROMPT, '\r')
  await login.reply('sent an invalid response to the sign-in', '')
  page = 'https://evil.test/device'
  await login.reply(PROMPT, '\r')
  await login.reply('Press Ctrl-C to cancel.', '\u0003')
  assert.equal(await login.ended, 1)
  assert.match(
    login.output(),
    /127\.0\.0\.1 wants you to sign in at another host\. If you trust evil\.test, open this page:/,
  )
  assert.equal(opened(), undefined)
})

test(
  'a server cannot make login wait forever, follow a redirect, or save anything but a key',
  onTerminal,
  async (t) => {
    const target = createServer((request) => assert.fail(`redirected to ${request.url}`))
    await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve))
    atEnd(t, () => target.close())
    const elsewhere = `http://127.0.0.1:${(target.address() as AddressInfo).port}`
    const key = { access_token: server.key.token, key_id: 'tok_1', label: 'x', approved_by: 'Ann' }
    let token: object | number = {}
    const codes = { device_code: 'x', user_code: 'BCDF-GHJK', expires_in: 1, interval: -1 }
    const other = createServer((request, response) => {
      const { url: path = '' } = request
      if (path.startsWith('/api/')) return response.end(JSON.stringify({ openapi: '3.1.0', paths: {} }))
      if (path === '/device/openapi.json') return response.end('{}')
      if (path === '/device/token' && typeof token === 'number')
        return response.writeHead(token, { location: elsewhere }).end('{}')
      const page = { ...codes, verification_uri_complete: `http://${request.headers.host}/device` }
      if (path === '/device/authorize') return response.end(JSON.stringify(page))
      const status = 'error' in (token as object) ? 400 : 200
      return response.writeHead(status).end(JSON.stringify(token))
    })
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    atEnd(t, () => other.close())
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    const { env, file } = createHome(t)
    const login = atTerminal(t, ['login', '--url', url], env)
    for (const [reply, message] of [
      [{ error: 'slow_down' }, 'The code has expired.'],
      [307, 'The server responded with status 307.'],
      [{ ...key, filler: 'x'.repeat(100_000) }, 'The code has expired.'],
      [{ ...key, access_token: 'adit_x\r\nX-Injected: 1' }, 'sent an invalid response to the sign-in'],
      [{ ...key, access_token: 'x'.repeat(201) }, 'sent an invalid response to the sign-in'],
      [{ ...key, key_id: 'tok_1; reboot' }, 'sent an invalid response to the sign-in'],
      [{ ...key, label: { toString: 1 } }, 'sent an invalid response to the sign-in'],
      [{ error: 'access_denied', error_description: 'no\n\nadit: forged' }, 'no adit: forged'],
    ] as const) {
      token = reply
      await login.reply(PROMPT, '\r')
      await login.reply(message, '')
    }
    assert.equal(await login.ended, 1)
    assert.ok(!existsSync(file))
  },
)
