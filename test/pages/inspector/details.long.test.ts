// What the inspector's page shows of a request, and what can be done with it.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { promisify } from 'node:util'
import type { Download, Page } from 'playwright-core'
import { test } from '../../support/browser.ts'
import { atEnd } from '../../support/cleanup.ts'
import { openSocket } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'
import { button, DESKTOP, field, PHONE, toast, waitForFocus } from '../support/harness.ts'
import { body, detail, openInspectorPage, part, row, rows, SCRIPT, startSamples } from './support.ts'

const dialog = (page: Page) => page.getByRole('dialog')
const clipboard = async (page: Page) => (await page.evaluate('navigator.clipboard.readText()')) as string
const current = (page: Page) => page.locator('button[data-request][aria-current=true]')

test('bodies are shown by what they are, and never as HTML', async (t) => {
  const { link, fetch } = await startSamples(t)
  const { page } = await openInspectorPage(t, link)
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const path of ['/html', '/image', '/binary', '/json']) await fetch({ path })
  await fetch({ method: 'POST', path: '/form', headers: form, body: Buffer.from('a=1&name=%3Cb%3Ex') })
  await fetch({ path: `/${encodeURIComponent(SCRIPT)}`, headers: { 'x-script': SCRIPT } })

  await row(page, '/html').click()
  await body(page, 'Response').getByText(SCRIPT).waitFor()
  await row(page, '/image').click()
  const image = detail(page).getByRole('img', { name: 'Response body (image/png)' })
  await image.waitFor()
  assert.equal(await page.evaluate('document.querySelector("main img").naturalWidth'), 1)
  await row(page, '/binary').click()
  await body(page, 'Response').getByText('00 01 02 03').waitFor()
  await row(page, '/json').click()
  await detail(page).getByText('gzip decoded').waitFor()
  assert.match((await body(page, 'Response').textContent()) ?? '', /^\{\n {2}"items": \[/)
  await row(page, '/form').click()
  await body(page, 'Request').getByText('name: <b>x').waitFor()
  await row(page, '/%3Cscript').click()
  await part(page, 'Request').getByText(SCRIPT).waitFor()
  assert.equal(await page.title(), 'Requests · Adit')
  assert.equal(await page.locator('main script, main iframe').count(), 0)
})

test('masked values are shown only on request, and copied and exported as they are shown', async (t) => {
  const { link, fetch } = await startSamples(t, ['--mask-header', 'X-Tenant'])
  const { page } = await openInspectorPage(t, link)
  await fetch({ path: '/sign-in', headers: { cookie: 'a=secret-cookie', 'x-tenant': 'secret-tenant' } })
  await row(page, '/sign-in').click()
  await part(page, 'Response').getByText('[masked]').waitFor()
  const secrets = /secret-(cookie|tenant|of-the-server)/
  assert.doesNotMatch((await page.content()) ?? '', secrets)
  const copy = async (format: string) => {
    await button(page, 'Copy').click()
    await page.getByRole('menuitem', { name: format }).click()
    await toast(page, `Copied ${format}.`).waitFor()
    return clipboard(page)
  }
  assert.doesNotMatch(await copy('curl command'), secrets)
  await button(page, 'Show masked values').click()
  await part(page, 'Response').getByText('secret-of-the-server').waitFor()
  await part(page, 'Request').getByText('secret-tenant').waitFor()
  assert.match(await copy('fetch call'), /secret-cookie/)
  await button(page, 'Mask values').click()
  await part(page, 'Response').getByText('[masked]').waitFor()
  assert.doesNotMatch((await page.content()) ?? '', secrets)
})

test('the copied curl command sends what was recorded, whatever quotes it has', async (t) => {
  const { link, fetch, received, tunnel, edge } = await startSamples(t)
  const { page } = await openInspectorPage(t, link)
  const hostile = `'; touch /tmp/hacked; '$(id)\`id\`\\ "!`
  await fetch({
    method: 'POST',
    path: "/copied?a='$(id)",
    headers: { authorization: hostile, 'content-type': 'text/plain' },
    body: Buffer.from(`${hostile}\n@file`),
  })
  await row(page, '/copied').click()
  await button(page, 'Show masked values').click()
  await part(page, 'Request').getByText(hostile, { exact: true }).waitFor()
  await button(page, 'Copy').click()
  await page.getByRole('menuitem', { name: 'curl command' }).click()
  await toast(page, 'Copied curl command.').waitFor()
  const command = await clipboard(page)
  assert.ok(command.includes(tunnel.url), command)
  // The host has no DNS here.
  const resolve = `--resolve '${new URL(tunnel.url).host}:127.0.0.1'`
  await promisify(execFile)('sh', ['-c', command.replace(/^curl /, `curl ${resolve} `)])
  const [first, second] = received
  assert.equal(received.length, 2)
  assert.deepEqual(second, first)
  assert.ok(edge.port > 0)
})

test('messages of a WebSocket and of an event stream appear as they pass', async (t) => {
  const { link, fetch, sendEvent, edge, tunnel } = await startSamples(t)
  const { page } = await openInspectorPage(t, link)
  const messages = detail(page).getByRole('region', { name: 'Messages' })

  const socket = await openSocket(edge, tunnel.host)
  await row(page, '101').click()
  socket.send('hello from the client')
  await until('the message and its echo are shown', async () => {
    const text = (await messages.textContent()) ?? ''
    return text.split('hello from the client').length === 3
  })
  await detail(page).getByText('WebSocket', { exact: true }).waitFor()
  assert.ok(await button(page, 'Replay').isDisabled())
  socket.close()
  await messages.getByText(/close/).first().waitFor()

  void fetch({ path: '/events' }).catch(() => undefined)
  await row(page, '/events').click()
  await until('the stream is open', async () => {
    sendEvent('<b>first</b>')
    return (await messages.getByText('<b>first</b>').count()) > 0
  })
  await messages.getByText(/^tick/).first().waitFor()
})

test('the keyboard moves, searches, replays, edits and compares, but not while text is typed', async (t) => {
  const { link, fetch, received } = await startSamples(t)
  const { page } = await openInspectorPage(t, link)
  for (const path of ['/one', '/two', '/three']) await fetch({ path })
  await until('all are listed', async () => (await rows(page).count()) === 3)

  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }
  await press('j')
  await current(page).filter({ hasText: '/three' }).waitFor()
  await press('j', 'ArrowDown', 'j')
  await current(page).filter({ hasText: '/one' }).waitFor()
  await press('k', 'ArrowUp', 'ArrowDown')
  await current(page).filter({ hasText: '/two' }).waitFor()
  await press('r')
  await until('it is replayed', () => received.length === 4)
  assert.equal(received.at(-1)?.url, '/two')
  await detail(page).getByText('Replay of').waitFor()

  await row(page, '/one').focus()
  await press('j')
  await waitForFocus(page, current(page))

  await press('/')
  await waitForFocus(page, field(page, 'Search in everything'))
  await page.keyboard.type('jRe/one')
  assert.equal(await field(page, 'Search in everything').inputValue(), 'jRe/one')
  await field(page, 'Search in everything').fill('/one')
  await until('one is listed', async () => (await rows(page).count()) === 1)
  await page.getByRole('heading', { level: 1 }).focus()
  await press('R')
  await until('the latest of the list is replayed', () => received.length === 5)
  assert.equal(received.at(-1)?.url, '/one')

  await detail(page).getByText('Replay of').waitFor()
  await press('e')
  await dialog(page).getByLabel('Path and query').waitFor()
  await press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
  await press('c')
  await dialog(page).getByText('No difference: 200 OK').waitFor()
  await press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
  await press('Escape')
  await until('none is selected', async () => (await current(page).count()) === 0)

  await press('?')
  await dialog(page).getByRole('switch', { name: 'Use keyboard shortcuts' }).click()
  await press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
  await press('j')
  await page.getByText('or move through the list').waitFor()
  assert.equal(await current(page).count(), 0, 'the shortcuts are off')
})

test('the filter selects by method, status, path and kind, and HAR files have what is listed', async (t) => {
  const { link, fetch } = await startSamples(t)
  const { page } = await openInspectorPage(t, link)
  await fetch({ path: '/missing', headers: { authorization: 'secret-key' } })
  await fetch({ path: '/error' })
  await fetch({ method: 'POST', path: '/orders' })
  await until('all are listed', async () => (await rows(page).count()) === 3)
  const listed = (count: number) => until(`${count} listed`, async () => (await rows(page).count()) === count)
  await button(page, 'Filter').click()
  await field(page, 'Method').selectOption('POST')
  await listed(1)
  await field(page, 'Method').selectOption('')
  await field(page, 'Status').fill('400-599')
  await listed(2)
  await field(page, 'Kind').selectOption('websocket')
  await page.getByText('No request matches').waitFor()
  await field(page, 'Kind').selectOption('')
  await field(page, 'Path contains').fill('MISS')
  await listed(1)
  await page.getByText('1 of 3').waitFor()

  const exportAs = async (name: string) => {
    await button(page, 'Export or delete').click()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name, exact: true }).click(),
    ])
    return readHar(download)
  }
  const masked = await exportAs('Export these as HAR')
  assert.deepEqual(
    masked.map(({ request }) => [request.method, new URL(request.url).pathname]),
    [['GET', '/missing']],
  )
  assert.ok(!JSON.stringify(masked).includes('secret-key'))
  const whole = await exportAs('Export these as HAR, secrets visible')
  assert.ok(JSON.stringify(whole).includes('secret-key'))

  await button(page, 'Clear filter').click()
  await listed(3)
  await button(page, 'Export or delete').click()
  await page.getByRole('menuitem', { name: 'Delete all' }).click()
  await dialog(page).getByRole('button', { name: 'Delete all' }).click()
  await page.getByText('No requests yet').waitFor()
})

test('the fields of the edit dialog show underscores, and its buttons are visible on every screen', async (t) => {
  const { link, fetch } = await startSamples(t)
  const { page } = await openInspectorPage(t, link)
  const headers = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`x-header-${index}`, 'a b']))
  await fetch({ method: 'POST', path: '/many', headers, body: Buffer.from('{"a":') })
  await row(page, '/many').click()
  await page.keyboard.press('e')
  const name = dialog(page).getByLabel('Name of header 1', { exact: true })
  const value = dialog(page).getByLabel('Value of header 1', { exact: true })
  const draw = async (text: string) => {
    await value.fill(text)
    return value.screenshot({ animations: 'disabled' })
  }
  assert.notDeepEqual(await draw('a_b'), await draw('a b'))
  await dialog(page).getByText('not valid JSON').waitFor()
  assert.ok(await dialog(page).getByRole('button', { name: 'Indent JSON' }).isDisabled())
  for (const viewport of [DESKTOP, PHONE]) {
    await page.setViewportSize(viewport)
    const replay = dialog(page).getByRole('button', { name: 'Replay', exact: true })
    await until('the button is in the window', async () => {
      const box = await replay.boundingBox()
      return box !== null && box.y + box.height <= viewport.height
    })
    await replay.click({ trial: true })
  }
  const { width = 0 } = (await value.boundingBox()) ?? {}
  assert.ok(width > 300, `the value has the width of the phone (${width})`)
  assert.ok(((await name.boundingBox())?.y ?? 0) < ((await value.boundingBox())?.y ?? 0))
})

test('a replay says how it went, and the id of a request can be copied', async (t) => {
  const { link, fetch, server } = await startSamples(t)
  const { page } = await openInspectorPage(t, link)
  await fetch({ path: '/missing' })
  await row(page, '/missing').click()
  await button(page, 'Copy ID').click()
  await until('it is copied', async () => {
    const id = await clipboard(page)
    return id !== '' && page.url().endsWith(`#${id}`)
  })
  await button(page, 'Replay').click()
  await toast(page, 'Replayed GET /missing: 404').waitFor()
  server.close()
  server.closeAllConnections()
  await button(page, 'Replay').click()
  await toast(page, /Replay failed\. The local server .* cannot be reached/).waitFor()
})

async function readHar(download: Download) {
  assert.match(download.suggestedFilename(), /\.har$/)
  const { log } = JSON.parse(readFileSync(await download.path(), 'utf8'))
  return log.entries as { request: { method: string; url: string } }[]
}

test('a webhook signature is checked with the secret, which is stored nowhere', async (t) => {
  const { link, fetch } = await startSamples(t)
  const { page } = await openInspectorPage(t, link)
  const payload = Buffer.from('{"action":"opened"}')
  const signature = `sha256=${createHmac('sha256', 'the-webhook-secret').update(payload).digest('hex')}`
  await fetch({
    method: 'POST',
    path: '/github',
    headers: { 'x-hub-signature-256': signature },
    body: payload,
  })
  await row(page, '/github').click()
  const check = async (secret: string) => {
    await dialog(page).getByLabel('Signing secret', { exact: true }).fill(secret)
    await dialog(page).getByRole('button', { name: 'Check signature' }).click()
  }
  await button(page, 'More actions').click()
  await page.getByRole('menuitem', { name: 'Check webhook signature' }).click()
  assert.equal(await field(page, 'Sender').inputValue(), 'github', 'by the header of the signature')
  await check('the-webhook-secret')
  await dialog(page).getByText('The signature is valid').waitFor()
  await check('another-secret')
  await dialog(page).getByText('The signature is not valid').waitFor()
  await page.keyboard.press('Escape')
  await dialog(page).waitFor({ state: 'detached' })
  const stored = await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')
  assert.doesNotMatch(`${stored}${await page.content()}`, /the-webhook-secret|another-secret/)
})

test('an ended client and a used link say what to do, and a new link in the same tab works', async (t) => {
  const { link, fetch, tunnel, adit, port } = await startSamples(t)
  const { page } = await openInspectorPage(t, link)
  await fetch({ path: '/one' })
  await row(page, '/one').waitFor()
  await page.reload()
  await row(page, '/one').waitFor()

  const { stdout: url } = await adit(['requests', 'link'])
  await page.evaluate('sessionStorage.clear()')
  await page.goto(link)
  await page.getByText('This link was used before').waitFor()
  await page.evaluate(`location.href = ${JSON.stringify(url.trim())}`)
  await row(page, '/one').click()
  await detail(page).getByText('This is /one.').waitFor()

  tunnel.child.kill('SIGTERM')
  await tunnel.ended
  await page.getByText('The tunnel client has ended').waitFor()
  await page.getByText(`adit tunnel ${port} --name app --inspect`).waitFor()
  await page.getByText('Disconnected').waitFor()
  await row(page, '/one').waitFor()
  for (const name of ['Replay', 'Edit']) assert.ok(await button(page, name).isDisabled())
  await page.keyboard.press('e')
  assert.equal(await dialog(page).count(), 0)

  const other = createServer((_request, response) => response.writeHead(401).end())
  await new Promise<void>((resolve) => other.listen(Number(new URL(link).port), '127.0.0.1', resolve))
  atEnd(t, () => other.close())
  await page.getByText('Another program has the port now').waitFor()
  await row(page, '/one').waitFor()
  await detail(page).getByText('This is /one.').waitFor()
})

test('what is typed, the list and the selection stay when requests arrive', async (t) => {
  const { link, fetch } = await startSamples(t)
  const { page } = await openInspectorPage(t, link)
  await fetch({ path: '/first' })
  await row(page, '/first').click()
  await page.keyboard.press('e')
  await dialog(page).getByLabel('Path and query').fill('/typed')
  for (let index = 0; index < 30; index++) await fetch({ path: `/later/${index}` })
  await until('all are listed', async () => (await rows(page).count()) === 31)
  assert.equal(await dialog(page).getByLabel('Path and query').inputValue(), '/typed')
  await page.keyboard.press('Escape')
  await current(page).filter({ hasText: '/first' }).waitFor()
  await page.goBack()
  await until('Back closes it', async () => (await current(page).count()) === 0)
})
